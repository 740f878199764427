#include "actors/io/http_connection.hpp"

#include <algorithm>
#include <utility>

#include <boost/beast/http/read.hpp>

namespace bulkhead::io {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;

/// Read of the next request, or dropped of what is no use any more, at a time.
constexpr std::size_t read_step = 16 * kibibyte;
/// How long a client that was refused may go on sending before its connection is cut, so that it
/// gets to read why.
constexpr milliseconds linger_time{2'000};

bool breaks_http(const error_code& failure) {
  return failure.category() == http::make_error_code(http::error::bad_method).category();
}

/// What to say to a request that couldn't be read; 0: nothing, the client is gone.
std::uint32_t status_of(const error_code& failure) {
  if (!breaks_http(failure) || failure == http::error::end_of_stream ||
      failure == http::error::partial_message) {
    return 0;
  }
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
    return 431;
  }
  return failure == http::error::body_limit ? 413 : 400;
}
std::string text_of(boost::beast::string_view text) {
  return std::string{text.data(), text.size()};
}

} // namespace

http_connection::http_connection(boost::asio::ip::tcp::socket socket,
                                 std::shared_ptr<const http_service> service,
                                 std::function<void(http_connection*)> ended)
    : socket_{std::move(socket)}, service_{std::move(service)}, ended_{std::move(ended)},
      timer_{socket_.get_executor()},
      write_timer_{socket_.get_executor()}, buffer_{service_->bounds.header + 8 * read_step} {
  error_code ignored;
  socket_.set_option(boost::asio::ip::tcp::no_delay{true}, ignored);
}

http_connection::~http_connection() = default;

void http_connection::start() {
  await_request();
}

void http_connection::turn_away() {
  refuse(explain_status(503));
}

void http_connection::wind_up() {
  winding_up_ = true;
  if (now_ == stage::idle || now_ == stage::head) {
    close();
  }
}

bool http_connection::dawdles() const {
  return now_ == stage::head &&
         std::chrono::steady_clock::now() - head_began_ >= service_->bounds.dawdle_time;
}

// Requests.

void http_connection::await_request() {
  if (winding_up_ || service_->closing) {
    close();
    return;
  }
  now_ = stage::idle;
  keep_alive_ = true;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(service_->bounds.header));
  parser_->body_limit(service_->bounds.body);
  limit(service_->bounds.idle_time);
  if (buffer_.size() == 0) {
    read_ahead();
  } else if (!reading_ahead_) {
    read_head();
  } else {
    // The next request has begun to come; who waits for more of it takes it up.
    error_code ignored;
    socket_.cancel(ignored);
  }
}

/// Reads what comes while no request is being read: the next one's beginning, or the end.
void http_connection::read_ahead() {
  if (reading_ahead_ || buffer_.size() >= read_step || now_ == stage::closed) {
    return;
  }
  reading_ahead_ = true;
  socket_.async_read_some(
      buffer_.prepare(read_step),
      [self = shared_from_this()](const error_code& failure, std::size_t bytes) {
        self->reading_ahead_ = false;
        if (self->now_ == stage::closed) {
          return;
        }
        self->buffer_.commit(bytes);
        // Taking up what has come already is asked for by an abort.
        bool taken_up = failure == boost::asio::error::operation_aborted &&
                        self->now_ == stage::idle && self->buffer_.size() > 0;
        if (failure && !taken_up) {
          // What is on its way may still be read by a client that closed only its own side.
          self->keep_alive_ = false;
          self->now_ == stage::finishing ? void() : self->close();
          return;
        }
        switch (self->now_) {
        case stage::idle:
          self->read_head();
          break;
        case stage::lingering:
          self->discard();
          break;
        default:
          self->read_ahead();
        }
      });
}

void http_connection::read_head() {
  now_ = stage::head;
  head_began_ = std::chrono::steady_clock::now();
  limit(service_->bounds.header_time);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](const error_code& failure, std::size_t) {
                            failure ? self->fail_read(failure) : self->take_head();
                          });
}

void http_connection::take_head() {
  const auto& head = parser_->get();
  keep_alive_ = parser_->keep_alive();
  old_client_ = head.version() < 11;
  request_ = {};
  request_.method = text_of(head.method_string());
  request_.target = text_of(head.target());
  for (const auto& field : head) {
    request_.fields.push_back({text_of(field.name_string()), text_of(field.value())});
  }
  if (request_.fields.size() > service_->bounds.fields) {
    refuse(explain_status(431));
    return;
  }
  if (const auto* coding = request_.find("transfer-encoding");
      coding != nullptr && !same_name(*coding, "chunked")) {
    refuse(explain_status(400));
    return;
  }
  auto principal = check_head(request_, service_->rules);
  if (!principal) {
    refuse(principal.error());
    return;
  }
  request_.principal = std::move(*principal);
  auto length = parser_->content_length().value_or(0);
  if (length > service_->bounds.body) {
    refuse(explain_status(413));
    return;
  }
  if (!make_room(length)) {
    refuse(explain_status(503));
    return;
  }
  now_ = stage::body;
  body_began_ = std::chrono::steady_clock::now();
  parser_->eager(true);
  if (const auto* expects = request_.find("expect");
      expects != nullptr && same_name(*expects, "100-continue") && !parser_->is_done()) {
    queue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  read_body();
}

/// Is there room for a body of that many bytes in all?
bool http_connection::make_room(std::uint64_t bytes) {
  auto more = bytes > body_share_.bytes() ? bytes - body_share_.bytes() : 0;
  return more == 0 || service_->budget->take(more, body_share_);
}

void http_connection::read_body() {
  if (parser_->is_done()) {
    hand_over();
    return;
  }
  auto expected_bytes = parser_->content_length().value_or(parser_->get().body().size());
  auto allowance = service_->bounds.body_time +
                   std::chrono::seconds{expected_bytes / service_->bounds.body_rate};
  auto spent =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - body_began_);
  limit(std::max(allowance - spent, milliseconds{0}));
  http::async_read_some(socket_, buffer_, *parser_,
                        [self = shared_from_this()](const error_code& failure, std::size_t) {
                          failure ? self->fail_read(failure) : self->body_came();
                        });
}

void http_connection::body_came() {
  auto bytes = parser_->get().body().size();
  if (bytes > service_->bounds.body) {
    refuse(explain_status(413));
  } else if (!make_room(bytes)) {
    refuse(explain_status(503));
  } else {
    read_body();
  }
}

void http_connection::hand_over() {
  now_ = stage::answering;
  timer_.cancel();
  request_.body = std::move(parser_->get().body());
  ++exchange_;
  status_ = std::make_shared<exchange_status>();
  service_->handle(std::exchange(request_, {}), std::exchange(body_share_, {}), make_reply());
  read_ahead();
}

void http_connection::refuse(const outgoing_answer& reason) {
  // What is left of the request isn't read, so that no other one can follow.
  keep_alive_ = false;
  body_share_.release();
  timer_.cancel();
  ++exchange_;
  status_ = std::make_shared<exchange_status>();
  now_ = stage::finishing;
  send_head(reason, reason.body.size());
  queue(reason.body);
}

void http_connection::fail_read(const error_code& failure) {
  if (now_ == stage::closed) {
    return;
  }
  if (failure == boost::asio::error::operation_aborted && timed_out_) {
    refuse(explain_status(408));
  } else if (auto status = status_of(failure); status != 0) {
    refuse(explain_status(status));
  } else {
    close();
  }
}
// The end.

void http_connection::linger() {
  now_ = stage::lingering;
  error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  limit(linger_time);
  discard();
}

void http_connection::discard() {
  if (reading_ahead_) {
    return;
  }
  discarded_ += buffer_.size();
  buffer_.consume(buffer_.size());
  if (discarded_ > 2 * service_->bounds.body) {
    close();
  } else {
    read_ahead();
  }
}

void http_connection::close() {
  if (now_ == stage::closed) {
    return;
  }
  auto self = shared_from_this();
  now_ = stage::closed;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  write_timer_.cancel();
  pieces_.clear();
  body_share_.release();
  if (status_) {
    status_->gone = true;
  }
  if (auto told = std::exchange(told_when_gone_, nullptr)) {
    told();
  }
  ended_(this);
}

void http_connection::limit(milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](const error_code& failure) {
    if (!failure && self->timer_.expiry() <= std::chrono::steady_clock::now()) {
      self->time_is_up();
    }
  });
}

void http_connection::time_is_up() {
  switch (now_) {
  case stage::idle:
  case stage::lingering:
    close();
    break;
  case stage::head:
  case stage::body: {
    // Whoever waits for the read says so to the client.
    timed_out_ = true;
    error_code ignored;
    socket_.cancel(ignored);
    break;
  }
  default:
    break;
  }
}

} // namespace bulkhead::io
