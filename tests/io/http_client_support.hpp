#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/io/io_support.hpp"

namespace bulkhead::testing {

/// A client that says exactly what a test wants it to, over one connection.
class raw_client {
public:
  explicit raw_client(std::uint16_t port) : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error{"connect"};
    }
  }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client() { close(); }

  /// False when the server has closed its end.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads until `end` has come, or the server closes its end; what was read so far.
  const std::string& read_until(std::string_view end) {
    auto limit = std::chrono::steady_clock::now() + patience;
    while (read_.find(end) == std::string::npos && std::chrono::steady_clock::now() < limit) {
      if (!read_some()) {
        break;
      }
    }
    return read_;
  }

  /// Reads until the server closes its end; all that was read.
  const std::string& read_all() { return read_until("\xff never comes"); }

  /// Forgets what was read.
  std::string take() { return std::exchange(read_, {}); }

  bool closed() const { return closed_; }

  void close_writing() const { ::shutdown(fd_, SHUT_WR); }

  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }

private:
  bool read_some() {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) == 0) {
      return true;
    }
    std::string buffer(65536, '\0');
    auto count = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    read_.append(buffer, 0, static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  std::string read_;
  bool closed_ = false;
};

} // namespace bulkhead::testing
