#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "protocol/error.hpp"

namespace bulkhead::io {

/// Binds `into` to a numeric address and listens. Errors: invalid_argument (no such address),
/// unavailable (the port is taken, …).
expected<void> listen_on(boost::asio::ip::tcp::acceptor& into, const std::string& address,
                         std::uint16_t port);

/// Puts a socket that is bound, and listens, into `into`, and closes it if it is of no use. Errors:
/// invalid_argument (no TCP socket that listens).
expected<void> adopt_socket(boost::asio::ip::tcp::acceptor& into, int descriptor);

/// Whom connections from there count for: the address or, of IPv6, its first 64 bits, which one
/// client has for itself.
std::string client_network(const boost::asio::ip::address& from);

} // namespace bulkhead::io
