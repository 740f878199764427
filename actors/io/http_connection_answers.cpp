// What a connection answers, and the reply that an exchange's owner holds.

#include "actors/io/http_connection.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

namespace bulkhead::io {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

/// The reply that an exchange's owner holds.
class connection_reply : public http_reply {
public:
  connection_reply(std::shared_ptr<http_connection> connection,
                   boost::asio::any_io_executor executor, std::uint64_t exchange,
                   std::shared_ptr<http_connection::exchange_status> status)
      : connection_{std::move(connection)}, executor_{std::move(executor)}, exchange_{exchange},
        status_{std::move(status)} {}

  ~connection_reply() override {
    post([](auto& connection, auto exchange) { connection.abandon(exchange); });
  }
  connection_reply(const connection_reply&) = delete;
  connection_reply& operator=(const connection_reply&) = delete;

  void answer(outgoing_answer whole) override {
    post([whole = std::move(whole)](auto& connection, auto exchange) mutable {
      connection.answer(exchange, std::move(whole));
    });
  }

  void begin(outgoing_answer head) override {
    post([head = std::move(head)](auto& connection, auto exchange) mutable {
      connection.begin(exchange, std::move(head));
    });
  }

  void write(std::string bytes) override {
    status_->unsent += bytes.size();
    post([bytes = std::move(bytes)](auto& connection, auto exchange) mutable {
      connection.write(exchange, std::move(bytes));
    });
  }

  void end() override {
    post([](auto& connection, auto exchange) { connection.end(exchange); });
  }

  bool gone() const override { return status_->gone; }
  std::size_t unsent() const override { return status_->unsent; }

  void when_gone(std::function<void()> told) override {
    post([told = std::move(told)](auto& connection, auto exchange) mutable {
      connection.when_gone(exchange, std::move(told));
    });
  }

private:
  template <class Work>
  void post(Work work) {
    boost::asio::post(executor_,
                      [connection = connection_, exchange = exchange_,
                       work = std::move(work)]() mutable { work(*connection, exchange); });
  }

  std::shared_ptr<http_connection> connection_;
  boost::asio::any_io_executor executor_;
  std::uint64_t exchange_;
  std::shared_ptr<http_connection::exchange_status> status_;
};

} // namespace

http_reply_ptr http_connection::make_reply() {
  return std::make_shared<connection_reply>(shared_from_this(), stream_->executor(), exchange_,
                                            status_);
}

void http_connection::answer(std::uint64_t exchange, outgoing_answer whole) {
  if (exchange != exchange_ || now_ != stage::answering) {
    return;
  }
  memory_budget::share held;
  if (!budget_->take(whole.body.size(), held)) {
    whole = explain_status(503);
  }
  now_ = stage::finishing;
  send_head(whole, whole.body.size());
  if (!head_only_) {
    queue({std::move(whole.body), std::move(held)});
  }
}

void http_connection::begin(std::uint64_t exchange, outgoing_answer head) {
  if (exchange != exchange_ || now_ != stage::answering) {
    return;
  }
  if (head_only_) {
    // There is nothing more that the client wants.
    now_ = stage::finishing;
    send_head(head, std::nullopt);
    tell_gone();
    return;
  }
  now_ = stage::streaming;
  events_ = std::any_of(head.fields.begin(), head.fields.end(), [](const http_field& field) {
    return same_name(field.name, "content-type") && field.value == "text/event-stream";
  });
  send_head(head, std::nullopt);
}

void http_connection::write(std::uint64_t exchange, std::string bytes) {
  if (exchange != exchange_ || now_ != stage::streaming || bytes.empty()) {
    return;
  }
  if (status_->unsent - bytes.size() > service_->bounds.write_ahead) {
    // It doesn't keep up, and what is said to it must be kept somewhere.
    close();
    return;
  }
  auto payload = bytes.size();
  if (!old_client_) {
    bytes = fmt::format("{:x}\r\n{}\r\n", payload, bytes);
  }
  memory_budget::share held;
  if (!budget_->take(bytes.size(), held)) {
    close();
    return;
  }
  queue({std::move(bytes), std::move(held)}, payload);
}

void http_connection::end(std::uint64_t exchange) {
  if (exchange != exchange_ || now_ != stage::streaming) {
    return;
  }
  now_ = stage::finishing;
  if (old_client_) {
    keep_alive_ = false;
    write_more();
    if (!writing_ && now_ == stage::finishing) {
      finish_exchange();
    }
    return;
  }
  queue({"0\r\n\r\n", {}});
}

void http_connection::abandon(std::uint64_t exchange) {
  if (exchange != exchange_) {
    return;
  }
  if (now_ == stage::answering) {
    answer(exchange, explain_status(500));
  } else if (now_ == stage::streaming) {
    close();
  }
}

void http_connection::when_gone(std::uint64_t exchange, std::function<void()> told) {
  if (exchange != exchange_) {
    return;
  }
  if (now_ == stage::closed || (status_ && status_->gone)) {
    told();
  } else if (now_ == stage::answering || now_ == stage::streaming) {
    told_when_gone_ = std::move(told);
  }
}

void http_connection::tell_gone() {
  if (status_) {
    status_->gone = true;
  }
  if (auto told = std::exchange(told_when_gone_, nullptr)) {
    told();
  }
}

void http_connection::send_head(const outgoing_answer& head, std::optional<std::size_t> length) {
  if (service_->answered) {
    service_->answered(head.status);
  }
  http::response<http::empty_body> message{static_cast<http::status>(head.status),
                                           old_client_ ? 10U : 11U};
  for (const auto& field : head.fields) {
    message.insert(field.name, field.value);
  }
  message.set("X-Content-Type-Options", "nosniff");
  if (message.find(http::field::cache_control) == message.end()) {
    message.set(http::field::cache_control, "no-store");
  }
  if (length && head.status != 204) {
    message.content_length(*length);
  } else if (!length) {
    message.chunked(!old_client_);
    keep_alive_ = keep_alive_ && !old_client_;
  }
  keep_alive_ = keep_alive_ && !winding_up_;
  message.keep_alive(keep_alive_);
  std::ostringstream text;
  text << message.base();
  queue({text.str(), {}});
}

/// `counted` of the bytes are counted as unsent already.
void http_connection::queue(piece next, std::size_t counted) {
  if (!next.bytes.empty()) {
    if (status_) {
      status_->unsent += next.bytes.size() - counted;
      next.counted = true;
    }
    pieces_.push_back(std::move(next));
    write_more();
  }
}

void http_connection::write_more() {
  if (writing_ || pieces_.empty() || now_ == stage::closed) {
    return;
  }
  writing_ = true;
  write_timer_.expires_after(service_->bounds.write_time);
  write_timer_.async_wait([self = shared_from_this()](const error_code& failure) {
    if (!failure && self->writing_ &&
        self->write_timer_.expiry() <= std::chrono::steady_clock::now()) {
      self->close();
    }
  });
  const auto& front = pieces_.front().bytes;
  stream_->write(boost::asio::buffer(front.data() + offset_, front.size() - offset_),
                 [self = shared_from_this()](const error_code& failure, std::size_t bytes) {
                   self->writing_ = false;
                   if (self->now_ == stage::closed) {
                     // Whoever holds the reply holds the connection, too.
                     self->pieces_.clear();
                     return;
                   }
                   failure ? self->close() : self->written(bytes);
                 });
}

void http_connection::written(std::size_t bytes) {
  offset_ += bytes;
  if (status_ && pieces_.front().counted) {
    status_->unsent -= bytes;
  }
  if (offset_ == pieces_.front().bytes.size()) {
    pieces_.pop_front();
    offset_ = 0;
  }
  if (!pieces_.empty()) {
    write_more();
    return;
  }
  write_timer_.cancel();
  if (now_ == stage::finishing) {
    finish_exchange();
  }
}

void http_connection::finish_exchange() {
  told_when_gone_ = nullptr;
  status_.reset();
  place_ = nullptr;
  keep_alive_ ? await_request() : linger();
}

} // namespace bulkhead::io
