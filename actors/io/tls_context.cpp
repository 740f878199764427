#include "actors/io/tls_context.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <boost/asio/ssl/context.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace bulkhead::io {

namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// Of TLS 1.2; all that 1.3 has will do.
constexpr auto ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
/// How ALPN names HTTP/1.1, after its length (RFC 7301, 6).
constexpr std::string_view http_1_1 = "\x08http/1.1";

tl::unexpected<error> refuse(std::string message) {
  return fail(errc::invalid_argument, std::move(message));
}

/// Chooses HTTP/1.1 of what the client offers, or none.
int choose_protocol(SSL* /*connection*/, const unsigned char** chosen, unsigned char* length,
                    const unsigned char* offered, unsigned int size, void* /*unused*/) {
  unsigned char* found = nullptr;
  auto outcome =
      SSL_select_next_proto(&found, length, reinterpret_cast<const unsigned char*>(http_1_1.data()),
                            static_cast<unsigned>(http_1_1.size()), offered, size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

expected<void> set_rules(ssl::context& made) {
  auto* native = made.native_handle();
  error_code failure;
  made.set_options(ssl::context::default_workarounds | ssl::context::no_compression, failure);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Connections that wait for long have no buffers.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(native, choose_protocol, nullptr);
  if (failure || SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(native, ciphers) != 1) {
    return fail(errc::unavailable, "OpenSSL has no TLS 1.2 with the ciphers that this server "
                                   "wants; see the system's OpenSSL configuration");
  }
  return {};
}

/// Is there such a file, and no pipe that a reader would wait for?
expected<void> check_file(std::string_view what, const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about {};
  bool good = fd >= 0 && ::fstat(fd, &about) == 0;
  std::string reason = good ? "it is no regular file" : std::strerror(errno);
  if (fd >= 0) {
    ::close(fd);
  }
  if (good && S_ISREG(about.st_mode)) {
    return {};
  }
  return refuse(fmt::format("the {} {} can't be read: {}; give a file that this account may read",
                            what, path, reason));
}

expected<void> check_dates(X509* certificate, const std::string& path) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return refuse(fmt::format("the certificate in {} has ended; renew it", path));
  }
  return {};
}

expected<void> read_files(ssl::context& made, const tls_files& files) {
  for (auto& [what, path] : {std::pair{"certificate", files.certificate}, {"key", files.key}}) {
    if (auto there = check_file(what, path); !there) {
      return there;
    }
  }
  error_code failure;
  made.use_certificate_chain_file(files.certificate, failure);
  if (failure) {
    return refuse(fmt::format("the certificate {} can't be used: {}; give a file in PEM, "
                              "the server's own certificate first",
                              files.certificate, failure.message()));
  }
  // OpenSSL would ask on the terminal.
  made.set_password_callback(
      [](std::size_t, ssl::context::password_purpose) { return std::string{}; }, failure);
  made.use_private_key_file(files.key, ssl::context::pem, failure);
  if (failure) {
    bool mismatch =
        ERR_GET_REASON(static_cast<unsigned long>(failure.value())) == X509_R_KEY_VALUES_MISMATCH;
    return refuse(mismatch ? fmt::format("the key {} doesn't belong to the certificate {}",
                                         files.key, files.certificate)
                           : fmt::format("the key {} can't be used: {}; give a file in "
                                         "PEM that isn't encrypted",
                                         files.key, failure.message()));
  }
  if (SSL_CTX_check_private_key(made.native_handle()) != 1) {
    ERR_clear_error();
    return refuse(fmt::format("the key {} doesn't belong to the certificate {}", files.key,
                              files.certificate));
  }
  return check_dates(SSL_CTX_get0_certificate(made.native_handle()), files.certificate);
}

} // namespace

expected<tls_context_ptr> make_tls_context(const tls_files& files) {
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  if (auto set = set_rules(*made); !set) {
    return tl::unexpected{set.error()};
  }
  if (auto read = read_files(*made, files); !read) {
    return tl::unexpected{read.error()};
  }
  return made;
}

} // namespace bulkhead::io
