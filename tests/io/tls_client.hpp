#pragma once

#include <sys/time.h>

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "tests/io/http_client_support.hpp"

namespace bulkhead::testing {

/// What a client of TLS wants; by default what any wants.
struct tls_wishes {
  int highest = TLS1_3_VERSION;
  std::string protocols{}; ///< for ALPN, each after its length
  const char* ciphers = nullptr;
};

/// A client that speaks TLS, and believes but one certificate, of "localhost". Each read ends after
/// `patience`.
class tls_client {
public:
  tls_client(std::uint16_t port, const std::string& certificate, const tls_wishes& wishes = {})
      : context_{SSL_CTX_new(TLS_client_method()), SSL_CTX_free},
        fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    timeval limit{std::chrono::duration_cast<std::chrono::seconds>(patience).count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error{"connect"};
    }
    // Old versions and ciphers, too, if a test wishes for them.
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_max_proto_version(context_.get(), wishes.highest);
    SSL_CTX_set_min_proto_version(context_.get(), 0);
    SSL_CTX_load_verify_locations(context_.get(), certificate.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (wishes.ciphers != nullptr) {
      SSL_CTX_set_cipher_list(context_.get(), wishes.ciphers);
    }
    tls_.reset(SSL_new(context_.get()));
    SSL_set1_host(tls_.get(), "localhost");
    if (!wishes.protocols.empty()) {
      SSL_set_alpn_protos(tls_.get(),
                          reinterpret_cast<const unsigned char*>(wishes.protocols.data()),
                          static_cast<unsigned>(wishes.protocols.size()));
    }
    SSL_set_fd(tls_.get(), fd_);
    agreed_ = SSL_connect(tls_.get()) == 1;
  }
  tls_client(const tls_client&) = delete;
  tls_client& operator=(const tls_client&) = delete;
  ~tls_client() {
    tls_.reset();
    ::close(fd_);
  }

  /// Could both agree on keys, and is the other who it says it is?
  bool agreed() const { return agreed_; }

  std::string version() const { return SSL_get_version(tls_.get()); }

  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(tls_.get(), &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }

  /// The serial number of the other's certificate.
  long serial() const {
    std::unique_ptr<X509, decltype(&X509_free)> certificate{SSL_get1_peer_certificate(tls_.get()),
                                                            X509_free};
    return ASN1_INTEGER_get(X509_get0_serialNumber(certificate.get()));
  }

  bool send(std::string_view bytes) {
    return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }

  /// Reads until `end` has come, or the end; what was read so far.
  const std::string& read_until(std::string_view end) {
    std::string buffer(65536, '\0');
    while (read_.find(end) == std::string::npos) {
      auto count = SSL_read(tls_.get(), buffer.data(), static_cast<int>(buffer.size()));
      if (count <= 0) {
        ended_ = SSL_get_error(tls_.get(), count);
        break;
      }
      read_.append(buffer, 0, static_cast<std::size_t>(count));
    }
    return read_;
  }

  const std::string& read_all() { return read_until("\xff never comes"); }

  std::string take() { return std::exchange(read_, {}); }

  /// Did the other say that it ends, as opposed to a connection that was cut?
  bool ended_well() const { return ended_ == SSL_ERROR_ZERO_RETURN; }

  /// Changes the keys (TLS 1.3), and has the other change its own, which it says with its next
  /// word.
  bool update_keys() {
    return SSL_key_update(tls_.get(), SSL_KEY_UPDATE_REQUESTED) == 1 &&
           SSL_do_handshake(tls_.get()) == 1;
  }

  /// Says farewell.
  void close() { SSL_shutdown(tls_.get()); }

private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
  int fd_;
  bool agreed_ = false;
  int ended_ = SSL_ERROR_NONE;
  std::string read_;
};

} // namespace bulkhead::testing
