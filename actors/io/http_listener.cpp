#include "actors/io/http_listener.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <unordered_map>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "actors/io/http_connection.hpp"
#include "actors/io/listening_socket.hpp"

namespace bulkhead::io {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

/// Between two attempts to accept when descriptors have run out.
constexpr milliseconds accept_pause{100};
/// Whoever ends a tenant's streams in order needs less.
constexpr milliseconds token_pause{1'000};
/// Connections beyond the bounds that are told why they are turned away.
constexpr std::size_t turned_away_at_once = 32;

class tcp_listener : public http_listener, public std::enable_shared_from_this<tcp_listener> {
public:
  tcp_listener(io_thread& io, http_listener_options& options, http_request_handler handle)
      : context_{io.context()}, acceptor_{context_}, pause_{context_}, grace_{context_},
        tokens_{context_}, service_{std::make_shared<http_service>()} {
    service_->rules = std::move(options.rules);
    service_->bounds = options.bounds;
    service_->budget = std::move(options.budget);
    service_->budget_of = std::move(options.budget_of);
    service_->handle = std::move(handle);
    service_->answered = std::move(options.answered);
  }

  expected<void> listen(const http_listener_options& options) {
    auto listening = options.adopted ? adopt_socket(acceptor_, *options.adopted)
                                     : listen_on(acceptor_, options.address, options.port);
    if (!listening) {
      return listening;
    }
    if (options.tls) {
      auto keys = make_tls_context(*options.tls);
      if (!keys) {
        return tl::unexpected{keys.error()};
      }
      service_->keys = std::move(*keys);
    }
    error_code ignored;
    port_ = acceptor_.local_endpoint(ignored).port();
    boost::asio::post(context_, [self = shared_from_this()] {
      self->accept();
      self->check_tokens_in(self->service_->bounds.token_time);
    });
    return {};
  }

  std::uint16_t port() const override { return port_; }

  expected<void> set_tls(const tls_files& files) override {
    auto keys = make_tls_context(files);
    if (!keys) {
      return tl::unexpected{keys.error()};
    }
    boost::asio::post(context_, [self = shared_from_this(), keys = std::move(*keys)] {
      self->service_->keys = keys;
    });
    return {};
  }

  void tokens_changed() override {
    boost::asio::post(context_,
                      [self = shared_from_this()] { self->check_tokens_in(token_pause); });
  }

  void close(milliseconds grace, std::function<void()> done) override {
    boost::asio::post(context_,
                      [self = shared_from_this(), grace, done = std::move(done)]() mutable {
                        if (done) {
                          self->waiting_.push_back(std::move(done));
                        }
                        self->wind_up(grace);
                      });
  }

private:
  struct client {
    std::shared_ptr<http_connection> connection;
    std::string network; ///< empty: it counts for none
    bool served;
  };

  void accept() {
    if (closing_) {
      return;
    }
    acceptor_.async_accept(
        [self = shared_from_this()](const error_code& failure, tcp::socket socket) {
          if (self->closing_) {
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
    error_code failure;
    auto from = socket.remote_endpoint(failure).address();
    if (failure) {
      return; // It is gone already.
    }
    bool counts = service_->bounds.counts_loopback || !is_loopback(from);
    auto network = counts ? client_network(from) : std::string{};
    bool served = has_room(network);
    if (!served && connections_.size() - served_ >= turned_away_at_once) {
      return;
    }
    auto connection = std::make_shared<http_connection>(
        make_http_stream(std::move(socket), service_->keys), service_,
        [weak = weak_from_this()](http_connection* ended) {
          if (auto self = weak.lock()) {
            self->forget(ended);
          }
        });
    connections_.emplace(connection.get(), client{connection, network, served});
    if (served) {
      ++served_;
      ++of_network_[network];
      connection->start();
    } else {
      connection->turn_away();
    }
  }

  static bool is_loopback(const boost::asio::ip::address& from) {
    if (from.is_v6() && from.to_v6().is_v4_mapped()) {
      return make_address_v4(boost::asio::ip::v4_mapped, from.to_v6()).is_loopback();
    }
    return from.is_loopback();
  }

  bool has_room(const std::string& network) {
    auto its_own = of_network_.find(network);
    if (!network.empty() && its_own != of_network_.end() &&
        its_own->second >= service_->bounds.connections_per_address &&
        !make_room([&](const client& each) { return each.network == network; })) {
      return false;
    }
    return served_ < service_->bounds.connections || make_room([](const client&) { return true; });
  }

  /// A client that keeps its connection for later makes room for one that wants something, and so
  /// does one that can't make up its mind, or that has its answer; of several the one that has for
  /// longest.
  template <class Eligible>
  bool make_room(Eligible eligible) {
    auto found = connections_.end();
    for (auto each = connections_.begin(); each != connections_.end(); ++each) {
      if (each->second.served && eligible(each->second) &&
          each->second.connection->idle_as() != http_connection::idleness::busy &&
          (found == connections_.end() || goes_before(*each->first, *found->first))) {
        found = each;
      }
    }
    if (found == connections_.end()) {
      return false;
    }
    auto connection = found->second.connection;
    connection->cut();
    return true;
  }

  static bool goes_before(const http_connection& one, const http_connection& other) {
    return one.idle_as() != other.idle_as() ? one.idle_as() > other.idle_as()
                                            : one.waits_since() < other.waits_since();
  }

  void check_tokens_in(milliseconds time) {
    if (closing_ || !service_->rules.authenticate) {
      return;
    }
    tokens_.expires_after(time);
    tokens_.async_wait([self = shared_from_this()](const error_code& failure) {
      if (!failure) {
        self->each_connection([](http_connection& connection) { connection.check_token(); });
        self->check_tokens_in(self->service_->bounds.token_time);
      }
    });
  }

  void forget(http_connection* ended) {
    auto found = connections_.find(ended);
    if (found == connections_.end()) {
      return;
    }
    if (found->second.served) {
      --served_;
      auto network = of_network_.find(found->second.network);
      if (--network->second == 0) {
        of_network_.erase(network);
      }
    }
    connections_.erase(found);
    tell_if_empty();
  }

  void wind_up(milliseconds grace) {
    if (!std::exchange(closing_, true)) {
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      tokens_.cancel();
      each_connection([](http_connection& connection) { connection.wind_up(); });
      grace_.expires_at(std::chrono::steady_clock::time_point::max());
    }
    auto end = std::chrono::steady_clock::now() + grace;
    if (!connections_.empty() && end < grace_.expiry()) {
      grace_.expires_at(end);
      grace_.async_wait([self = shared_from_this()](const error_code& failure) {
        if (!failure) {
          self->each_connection([](http_connection& connection) { connection.cut(); });
        }
      });
    }
    tell_if_empty();
  }

  /// Each may leave the table in the course of it.
  template <class Work>
  void each_connection(Work work) {
    auto all = connections_;
    for (auto& [address, each] : all) {
      work(*each.connection);
    }
  }

  void tell_if_empty() {
    if (!closing_ || !connections_.empty()) {
      return;
    }
    grace_.cancel();
    // Whoever answered requests may be waiting for the last who knows it to be gone.
    service_->handle = nullptr;
    for (auto& done : std::exchange(waiting_, {})) {
      done();
    }
  }

  boost::asio::io_context& context_;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer tokens_; ///< when to look at them again
  std::shared_ptr<http_service> service_;
  std::unordered_map<http_connection*, client> connections_;
  std::map<std::string, std::size_t> of_network_; ///< of those that are served
  std::size_t served_ = 0;
  bool closing_ = false;
  std::vector<std::function<void()>> waiting_;
  std::uint16_t port_ = 0;
};

} // namespace

expected<std::shared_ptr<http_listener>>
http_listener::open(io_thread& io, http_listener_options options, http_request_handler handle) {
  auto listener = std::make_shared<tcp_listener>(io, options, std::move(handle));
  if (auto listening = listener->listen(options); !listening) {
    return tl::unexpected{listening.error()};
  }
  return listener;
}

void close_and_wait(http_listener& which, milliseconds grace) {
  constexpr milliseconds beyond{1'000}; // for what is cut to be gone
  auto done = std::make_shared<std::promise<void>>();
  auto closed = done->get_future();
  which.close(grace, [done] { done->set_value(); });
  closed.wait_for(grace + beyond);
}

} // namespace bulkhead::io
