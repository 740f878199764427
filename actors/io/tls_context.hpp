#pragma once

#include <memory>

#include "protocol/error.hpp"
#include "protocol/tls_files.hpp"

namespace boost::asio::ssl {
class context;
}

namespace bulkhead::io {

/// What all connections of a server that speak TLS have in common.
using tls_context_ptr = std::shared_ptr<boost::asio::ssl::context>;

/// Reads both files and makes what a server needs to speak TLS 1.2 and 1.3: forward secrecy and
/// authenticated encryption only, HTTP/1.1 where the client negotiates (ALPN). Blocks on the files.
/// Errors, each with the file, the reason and the remedy: invalid_argument (a file that can't be
/// read or understood, a key that doesn't belong to the certificate, a certificate that has ended).
expected<tls_context_ptr> make_tls_context(const tls_files& files);

} // namespace bulkhead::io
