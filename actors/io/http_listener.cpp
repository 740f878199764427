#include "actors/io/http_listener.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "actors/io/http_connection.hpp"

namespace bulkhead::io {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// Between two attempts to accept when descriptors have run out.
constexpr std::chrono::milliseconds accept_pause{100};
/// Connections beyond the bound that are told why they are turned away.
constexpr std::size_t turned_away_at_once = 32;

class tcp_listener : public http_listener, public std::enable_shared_from_this<tcp_listener> {
public:
  tcp_listener(io_thread& io, http_listener_options options, http_request_handler handle)
      : context_{io.context()}, acceptor_{context_}, pause_{context_},
        service_{std::make_shared<http_service>()} {
    service_->rules = std::move(options.rules);
    service_->bounds = options.bounds;
    service_->budget = std::move(options.budget);
    service_->handle = std::move(handle);
    service_->answered = std::move(options.answered);
  }

  expected<void> listen(const std::string& address, std::uint16_t port) {
    error_code failure;
    auto host = boost::asio::ip::make_address(address, failure);
    if (failure) {
      return fail(errc::invalid_argument,
                  fmt::format("listen on \"{}\": give a numeric address, e.g. 127.0.0.1", address));
    }
    tcp::endpoint where{host, port};
    acceptor_.open(where.protocol(), failure);
    if (!failure) {
      acceptor_.set_option(tcp::acceptor::reuse_address{true}, failure);
      acceptor_.bind(where, failure);
    }
    if (!failure) {
      acceptor_.listen(boost::asio::socket_base::max_listen_connections, failure);
    }
    if (failure) {
      return fail(errc::unavailable,
                  fmt::format("listen on {} port {}: {}", address, port, failure.message()));
    }
    port_ = acceptor_.local_endpoint(failure).port();
    boost::asio::post(context_, [self = shared_from_this()] { self->accept(); });
    return {};
  }

  std::uint16_t port() const override { return port_; }

  void close(std::function<void()> done) override {
    boost::asio::post(context_, [self = shared_from_this(), done = std::move(done)]() mutable {
      if (done) {
        self->waiting_.push_back(std::move(done));
      }
      self->service_->closing = true;
      error_code ignored;
      self->acceptor_.close(ignored);
      self->pause_.cancel();
      // Each may leave the table as it ends.
      auto all = self->connections_;
      for (auto& [address, connection] : all) {
        connection->wind_up();
      }
      self->tell_if_empty();
    });
  }

private:
  void accept() {
    if (service_->closing) {
      return;
    }
    acceptor_.async_accept(
        [self = shared_from_this()](const error_code& failure, tcp::socket socket) {
          if (self->service_->closing) {
            return;
          }
          if (failure) {
            self->pause_.expires_after(accept_pause);
            self->pause_.async_wait([self](const error_code&) { self->accept(); });
            return;
          }
          self->take(std::move(socket));
          self->accept();
        });
  }

  void take(tcp::socket socket) {
    bool room = connections_.size() < service_->bounds.connections || make_room();
    if (!room && connections_.size() >= service_->bounds.connections + turned_away_at_once) {
      return;
    }
    auto connection = std::make_shared<http_connection>(
        std::move(socket), service_, [weak = weak_from_this()](http_connection* ended) {
          if (auto self = weak.lock()) {
            self->connections_.erase(ended);
            self->tell_if_empty();
          }
        });
    connections_.emplace(connection.get(), connection);
    room ? connection->start() : connection->turn_away();
  }

  /// A client that keeps its connection for later makes room for one that wants something, and so
  /// does one that can't make up its mind.
  bool make_room() {
    for (auto gives_way : {&http_connection::waits_for_request, &http_connection::dawdles}) {
      auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& each) {
        return (each.second.get()->*gives_way)();
      });
      if (found != connections_.end()) {
        auto connection = found->second;
        connection->wind_up();
        return true;
      }
    }
    return false;
  }

  void tell_if_empty() {
    if (!service_->closing || !connections_.empty()) {
      return;
    }
    for (auto& done : std::exchange(waiting_, {})) {
      done();
    }
  }

  boost::asio::io_context& context_;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<http_service> service_;
  std::unordered_map<http_connection*, std::shared_ptr<http_connection>> connections_;
  std::vector<std::function<void()>> waiting_;
  std::uint16_t port_ = 0;
};

} // namespace

expected<std::shared_ptr<http_listener>>
http_listener::open(io_thread& io, http_listener_options options, http_request_handler handle) {
  auto address = options.address;
  auto port = options.port;
  auto listener = std::make_shared<tcp_listener>(io, std::move(options), std::move(handle));
  if (auto listening = listener->listen(address, port); !listening) {
    return tl::unexpected{listening.error()};
  }
  return listener;
}

} // namespace bulkhead::io
