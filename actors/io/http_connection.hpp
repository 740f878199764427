#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>

#include "actors/io/growing_body.hpp"
#include "actors/io/http_listener.hpp"
#include "actors/io/http_stream.hpp"
#include "actors/io/principal_places.hpp"

namespace bulkhead::io {

/// What all connections of a listener share; on the I/O thread.
struct http_service {
  http_rules rules;
  http_bounds bounds;
  std::shared_ptr<memory_budget> budget;
  std::function<std::shared_ptr<memory_budget>(const std::string& principal)> budget_of;
  std::shared_ptr<principal_places> places = std::make_shared<principal_places>();
  http_request_handler handle;
  tls_context_ptr keys;                               ///< for new connections; null: in the clear
  std::function<void(std::uint32_t status)> answered; ///< null: nobody is told
};

/// One client's connection. On the I/O thread alone, but for what `exchange_status` shares.
class http_connection : public std::enable_shared_from_this<http_connection> {
public:
  http_connection(std::unique_ptr<http_stream> stream, std::shared_ptr<const http_service> service,
                  std::function<void(http_connection*)> ended);
  ~http_connection();

  void start();

  /// Refuses to serve this client and closes.
  void turn_away();

  /// Takes no more requests: closes it if none has begun to come, refuses one that is coming, and
  /// lets an exchange that is under way end first.
  void wind_up();

  /// Ends it at once, whatever it is at.
  void cut() { close(); }

  /// Ends a stream whose reader's token isn't valid any more, or has become another's.
  void check_token();

  /// What it may be ended for, where others want the room.
  enum class idleness : std::uint8_t {
    busy,     ///< nothing
    leaving,  ///< it was answered, and its end is waited for
    dawdling, ///< its client takes its time over the keys or a request's header
    waiting,  ///< nothing of a request has come
  };
  idleness idle_as() const;
  /// Since when the client has been expected to do something.
  std::chrono::steady_clock::time_point waits_since() const { return waits_since_; }

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
    keys,      ///< TLS is being agreed on
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
    bool counted = false; ///< as what the exchange has yet to send
  };

  /// Read at a time, and the most that is read ahead of what is asked for.
  static constexpr std::size_t read_step = 16 * kibibyte;

  // Reading.
  void read();
  void came(std::size_t bytes);
  void client_ended();
  std::string_view come() const;
  void expect(stage next, std::chrono::milliseconds time);
  void limit(std::chrono::milliseconds time);
  void time_is_up();

  // Requests.
  void await_request();
  void read_head();
  void take_head();
  bool charge_to(const std::string& principal);
  void read_body();
  bool charge_body();
  void hand_over();
  http_reply_ptr make_reply();
  void refuse(const outgoing_answer& reason);
  static outgoing_answer stopping();

  // Answers.
  void tell_gone();
  void send_head(const outgoing_answer& head, std::optional<std::size_t> length);
  void queue(piece next, std::size_t counted = 0);
  void write_more();
  void written(std::size_t bytes);
  void finish_exchange();

  // The end.
  void linger();
  void discard();
  void close();

  std::unique_ptr<http_stream> stream_;
  std::shared_ptr<const http_service> service_;
  std::function<void(http_connection*)> ended_;
  boost::asio::steady_timer timer_;       ///< for what is to come from the client
  boost::asio::steady_timer write_timer_; ///< for what it is to take
  std::array<char, read_step> incoming_;  ///< what is being read
  boost::beast::flat_buffer buffer_;      ///< what has come and wasn't taken
  std::optional<boost::beast::http::request_parser<growing_body>> parser_;
  stage now_ = stage::keys;
  bool reading_ = false;
  bool keep_alive_ = true;
  bool old_client_ = false; ///< HTTP/1.0: no chunks
  bool head_only_ = false;  ///< a HEAD: the answer's body isn't sent
  bool events_ = false;     ///< the stream that has begun is one of events, whole at any time
  bool winding_up_ = false; ///< it ends with the answer that it is at
  bool turned_away_ = false;
  incoming_request request_; ///< but for its body, while that is coming
  std::chrono::steady_clock::time_point waits_since_;
  std::string principal_;                 ///< of the request that it is at, and the token that
  std::string token_;                     ///< came with it
  std::shared_ptr<memory_budget> budget_; ///< of the principal, once that is known
  principal_places::place place_;         ///< of the principal, while its request is at it
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
