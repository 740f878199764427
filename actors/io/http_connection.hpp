#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "actors/io/http_listener.hpp"

namespace bulkhead::io {

/// What all connections of a listener share; on the I/O thread.
struct http_service {
  http_rules rules;
  http_bounds bounds;
  std::shared_ptr<memory_budget> budget;
  http_request_handler handle;
  std::function<void(std::uint32_t status)> answered; ///< null: nobody is told
  bool closing = false; ///< a connection ends with the answer that it is at
};

/// One client's connection. On the I/O thread alone, but for what `exchange_status` shares.
class http_connection : public std::enable_shared_from_this<http_connection> {
public:
  http_connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<const http_service> service,
                  std::function<void(http_connection*)> ended);
  ~http_connection();

  void start();

  /// Refuses to serve this client and closes.
  void turn_away();

  /// Closes it if no request has come whole, else after the answer.
  void wind_up();

  bool waits_for_request() const { return now_ == stage::idle; }
  /// Is its client taking its time over a request's header?
  bool dawdles() const;

  // What replies ask for; `exchange` tells whose, so that one that is over says nothing more.

  void answer(std::uint64_t exchange, outgoing_answer whole);
  void begin(std::uint64_t exchange, outgoing_answer head);
  void write(std::uint64_t exchange, std::string bytes);
  void end(std::uint64_t exchange);
  void abandon(std::uint64_t exchange);
  void when_gone(std::uint64_t exchange, std::function<void()> told);

  /// What a reply may look at from any thread.
  struct exchange_status {
    std::atomic<bool> gone = false;
    std::atomic<std::size_t> unsent = 0;
  };

private:
  enum class stage : std::uint8_t {
    idle,      ///< nothing of a request has come
    head,      ///< its header is coming
    body,      ///< its body is coming
    answering, ///< it was handed over; nothing of an answer has been said
    streaming, ///< an answer has begun
    finishing, ///< the answer is said, and on its way
    lingering, ///< all is said; what the client still sends is read and dropped
    closed,
  };

  struct piece {
    std::string bytes;
    memory_budget::share held;
  };

  void await_request();
  void read_ahead();
  void read_head();
  void take_head();
  bool make_room(std::uint64_t bytes);
  void read_body();
  void body_came();
  void hand_over();
  http_reply_ptr make_reply();
  void refuse(const outgoing_answer& reason);
  void fail_read(const boost::system::error_code& failure);

  void send_head(const outgoing_answer& head, std::optional<std::size_t> length);
  void queue(std::string bytes);
  void write_more();
  void written(std::size_t bytes);
  void finish_exchange();
  void linger();
  void discard();
  void close();

  void limit(std::chrono::milliseconds time);
  void time_is_up();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<const http_service> service_;
  std::function<void(http_connection*)> ended_;
  boost::asio::steady_timer timer_;       ///< for what is to come from the client
  boost::asio::steady_timer write_timer_; ///< for what it is to take
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  stage now_ = stage::idle;
  bool reading_ahead_ = false;
  bool keep_alive_ = true;
  bool old_client_ = false; ///< HTTP/1.0: no chunks
  bool winding_up_ = false;
  bool timed_out_ = false;
  incoming_request request_; ///< but for its body, while that is coming
  std::chrono::steady_clock::time_point head_began_;
  std::chrono::steady_clock::time_point body_began_;
  memory_budget::share body_share_;
  std::size_t discarded_ = 0;

  std::uint64_t exchange_ = 0; ///< the one that is at it; counts up
  std::shared_ptr<exchange_status> status_;
  std::function<void()> told_when_gone_;
  std::deque<piece> pieces_;
  std::size_t offset_ = 0; ///< written of the first piece
  bool writing_ = false;
};

} // namespace bulkhead::io
