// A connection's life, and what it reads.

#include "actors/io/http_connection.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>

namespace bulkhead::io {

namespace {

using boost::system::error_code;
using std::chrono::milliseconds;

/// How long a client that was refused may go on sending before its connection is cut, so that it
/// gets to read why.
constexpr milliseconds linger_time{2'000};

} // namespace

http_connection::http_connection(std::unique_ptr<http_stream> stream,
                                 std::shared_ptr<const http_service> service,
                                 std::function<void(http_connection*)> ended)
    : stream_{std::move(stream)}, service_{std::move(service)}, ended_{std::move(ended)},
      timer_{stream_->executor()}, write_timer_{stream_->executor()}, budget_{service_->budget} {}

http_connection::~http_connection() = default;

void http_connection::start() {
  expect(stage::keys, service_->bounds.handshake_time);
  stream_->start([self = shared_from_this()](const error_code& failure) {
    if (self->now_ == stage::closed) {
      return;
    }
    if (failure) {
      self->close();
    } else if (self->turned_away_) {
      self->refuse(explain_status(503));
    } else {
      self->await_request();
    }
  });
}

void http_connection::turn_away() {
  turned_away_ = true;
  start();
}

void http_connection::wind_up() {
  winding_up_ = true;
  switch (now_) {
  case stage::keys:
    close();
    break;
  case stage::idle:
    // A request that is on its way is refused when it is read.
    if (!stream_->has_unread()) {
      close();
    }
    break;
  case stage::head:
  case stage::body:
    refuse(stopping());
    break;
  default:
    break;
  }
}

void http_connection::check_token() {
  // What isn't a stream is answered soon; what is public needs no token.
  if (now_ != stage::streaming || principal_.empty() || !service_->rules.authenticate) {
    return;
  }
  auto holder = service_->rules.authenticate(token_);
  // Where the token can't be judged just now, it keeps its effect.
  bool refused = !holder && (holder.error().status == 401 || holder.error().status == 403);
  if (!refused && (!holder || *holder == principal_)) {
    return;
  }
  if (!events_) {
    close(); // a part of something must not look like the whole
    return;
  }
  keep_alive_ = false;
  tell_gone();
  end(exchange_);
}

http_connection::idleness http_connection::idle_as() const {
  switch (now_) {
  case stage::idle:
    return idleness::waiting;
  case stage::keys:
  case stage::head:
    return std::chrono::steady_clock::now() - waits_since_ >= service_->bounds.dawdle_time
               ? idleness::dawdling
               : idleness::busy;
  case stage::lingering:
    return idleness::leaving;
  default:
    return idleness::busy;
  }
}

// Reading. There is one read at a time, always, as long as there is room for what comes: that is
// how a client's end is noticed.

void http_connection::read() {
  bool takes_it = now_ == stage::head || now_ == stage::body;
  if (reading_ || now_ == stage::closed || (!takes_it && buffer_.size() >= read_step)) {
    return;
  }
  reading_ = true;
  stream_->read(boost::asio::buffer(incoming_),
                [self = shared_from_this()](const error_code& failure, std::size_t bytes) {
                  self->reading_ = false;
                  if (self->now_ == stage::closed) {
                    return;
                  }
                  failure ? self->client_ended() : self->came(bytes);
                });
}

void http_connection::came(std::size_t bytes) {
  buffer_.commit(
      boost::asio::buffer_copy(buffer_.prepare(bytes), boost::asio::buffer(incoming_, bytes)));
  switch (now_) {
  case stage::idle:
  case stage::head:
    read_head();
    break;
  case stage::body:
    read_body();
    break;
  case stage::lingering:
    discard();
    break;
  default:
    read();
  }
}

void http_connection::client_ended() {
  keep_alive_ = false;
  // What is on its way may still be read by a client that closed only its own side.
  if (now_ != stage::finishing) {
    close();
  }
}

std::string_view http_connection::come() const {
  auto all = buffer_.cdata();
  return {static_cast<const char*>(all.data()), all.size()};
}

void http_connection::expect(stage next, milliseconds time) {
  now_ = next;
  waits_since_ = std::chrono::steady_clock::now();
  limit(time);
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
    linger();
    break;
  case stage::head:
  case stage::body:
    refuse(explain_status(408));
    break;
  case stage::keys:
  case stage::lingering:
    close();
    break;
  default:
    break;
  }
}

// The end.

void http_connection::linger() {
  stream_->end_writing(shared_from_this());
  expect(stage::lingering, linger_time);
  discard();
}

void http_connection::discard() {
  discarded_ += buffer_.size();
  buffer_.consume(buffer_.size());
  if (discarded_ > 2 * service_->bounds.body) {
    close();
  } else {
    read();
  }
}

void http_connection::close() {
  if (now_ == stage::closed) {
    return;
  }
  auto self = shared_from_this();
  now_ = stage::closed;
  stream_->close();
  timer_.cancel();
  write_timer_.cancel();
  // What is being written is looked at until that has ended, which a closed stream does at once.
  pieces_.erase(pieces_.begin() + (writing_ ? 1 : 0), pieces_.end());
  if (writing_) {
    pieces_.front().held.release();
  }
  body_share_.release();
  place_ = nullptr;
  tell_gone();
  ended_(this);
}

} // namespace bulkhead::io
