#include "actors/io/listening_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead::io {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// An option of a socket that is a number; -1 when it has none.
int option(int descriptor, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

} // namespace

expected<void> listen_on(tcp::acceptor& into, const std::string& address, std::uint16_t port) {
  error_code failure;
  auto host = boost::asio::ip::make_address(address, failure);
  if (failure) {
    return fail(errc::invalid_argument,
                fmt::format("listen on \"{}\": give a numeric address, e.g. 127.0.0.1", address));
  }
  tcp::endpoint where{host, port};
  into.open(where.protocol(), failure);
  if (!failure) {
    into.set_option(tcp::acceptor::reuse_address{true}, failure);
    into.bind(where, failure);
  }
  if (!failure) {
    into.listen(boost::asio::socket_base::max_listen_connections, failure);
  }
  if (failure) {
    bool taken = failure == boost::asio::error::address_in_use;
    return fail(
        errc::unavailable,
        fmt::format("listen on {} port {}: {}{}", address, port, failure.message(),
                    taken ? fmt::format("; who has it tells: ss -ltnp 'sport = :{}'", port) : ""));
  }
  return {};
}

expected<void> adopt_socket(tcp::acceptor& into, int descriptor) {
  auto family = option(descriptor, SO_DOMAIN);
  bool is_tcp = (family == AF_INET || family == AF_INET6) &&
                option(descriptor, SO_TYPE) == SOCK_STREAM &&
                option(descriptor, SO_PROTOCOL) == IPPROTO_TCP;
  error_code failure;
  if (is_tcp && option(descriptor, SO_ACCEPTCONN) == 1) {
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    into.assign(family == AF_INET ? tcp::v4() : tcp::v6(), descriptor, failure);
    if (!failure) {
      return {};
    }
  }
  ::close(descriptor);
  return fail(
      errc::invalid_argument,
      fmt::format("the socket {} that was handed over is no TCP socket that listens{}; in a "
                  "systemd unit, say ListenStream=PORT or ADDRESS:PORT, and Accept=no",
                  descriptor, failure ? ": " + failure.message() : ""));
}

std::string client_network(const boost::asio::ip::address& from) {
  if (from.is_v4()) {
    return from.to_string();
  }
  auto address = from.to_v6();
  if (address.is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address).to_string();
  }
  auto bytes = address.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6{bytes}.to_string();
}

} // namespace bulkhead::io
