#include "actors/io/attached_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "actors/io/http_exchange.hpp"

namespace bulkhead::io {

using namespace std::chrono_literals;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t read_size = std::size_t{64} * 1024;
constexpr auto attach_budget = 15s;
constexpr auto state_budget = 5s;
constexpr auto removal_budget = 20s;
/// The service knows of a container's end within milliseconds; on a busy machine it takes longer.
/// The waits between questions double from 2 ms on: 8 s together.
constexpr int most_questions = 12;
constexpr std::int32_t killed_exit_code = 128 + SIGKILL;

/// One buffer serves all: they live on one thread.
std::array<char, read_size>& read_buffer() {
  static std::array<char, read_size> buffer;
  return buffer;
}

} // namespace

/// The exchange that turns a connection into a container's stdio.
struct attached_stream::handshake : std::enable_shared_from_this<handshake> {
  handshake(io_thread& io, stream_request what, opened then)
      : owner{io}, asked{std::move(what)}, done{std::move(then)}, stream{io.context()},
        request{make_request(http::verb::post, asked.attach, {})} {
    request.set(http::field::connection, "Upgrade");
    request.set(http::field::upgrade, "tcp");
    parser.body_limit(longest_http_body);
  }

  void start() {
    auto endpoint = endpoint_of(asked.socket);
    if (!endpoint) {
      boost::asio::post(owner.context(), [self = shared_from_this(), endpoint] {
        self->done(tl::unexpected{endpoint.error()});
      });
      return;
    }
    stream.expires_after(attach_budget);
    stream.async_connect(*endpoint, [self = shared_from_this()](const error_code& failure) {
      failure ? self->fail_with(failure, false) : self->send();
    });
  }

  void send() {
    http::async_write(stream, request,
                      [self = shared_from_this()](const error_code& failure, std::size_t) {
                        failure ? self->fail_with(failure, true) : self->receive_header();
                      });
  }

  void receive_header() {
    http::async_read_header(stream, buffer, parser,
                            [self = shared_from_this()](const error_code& failure, std::size_t) {
                              failure ? self->fail_with(failure, true) : self->upgrade();
                            });
  }

  void upgrade() {
    auto status = parser.get().result_int();
    if (status != 101 && status != 200) {
      receive_refusal();
      return;
    }
    stream.expires_never();
    std::shared_ptr<attached_stream> result{new attached_stream{owner, std::move(asked)}};
    result->socket_ = stream.release_socket();
    result->early_ = std::move(buffer);
    result->socket_.non_blocking(true);
    done(std::move(result));
  }

  void receive_refusal() {
    http::async_read(stream, buffer, parser,
                     [self = shared_from_this()](const error_code& failure, std::size_t) {
                       const auto& answer = self->parser.get();
                       failure
                           ? self->fail_with(failure, true)
                           : self->done(fail(errc::unavailable,
                                             rest_complaint(answer.result_int(), answer.body())));
                     });
  }

  void fail_with(const error_code& failure, bool connected) {
    done(tl::unexpected{explain(failure, asked.socket, connected)});
  }

  io_thread& owner;
  stream_request asked;
  opened done;
  socket_stream stream;
  http_request request;
  http::response_parser<http::string_body> parser;
  boost::beast::flat_buffer buffer{longest_http_body};
};

void attached_stream::open(io_thread& io, stream_request request, opened done) {
  std::make_shared<handshake>(io, std::move(request), std::move(done))->start();
}

attached_stream::attached_stream(io_thread& io, stream_request request)
    : io_{io}, request_{std::move(request)}, socket_{io.context()}, timer_{io.context()} {}

void attached_stream::begin(child_events to, std::uint64_t credit) {
  to_ = std::move(to);
  out_credit_ += credit;
  err_credit_ += credit;
  auto early = early_.data();
  take({static_cast<const char*>(early.data()), early.size()});
  early_.clear();
  read_more();
}

// -- output --------------------------------------------------------------------------------------

void attached_stream::add_credit(stream_id stream, std::uint64_t bytes) {
  (stream == stream_id::out ? out_credit_ : err_credit_) += bytes;
  read_more();
}

void attached_stream::mute() {
  muted_ = true;
  read_more();
}

void attached_stream::read_more() {
  if (reading_ || ended_) {
    return;
  }
  auto& buffer = read_buffer();
  auto want = static_cast<std::uint64_t>(buffer.size());
  want = muted_ ? want : std::min({want, out_credit_, err_credit_});
  if (want == 0) {
    return;
  }
  auto count = ::read(socket_.native_handle(), buffer.data(), want);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    end_of_stream();
    return;
  }
  reading_ = true;
  auto again = [self = shared_from_this()](const error_code& = {}) {
    self->reading_ = false;
    self->read_more();
  };
  if (count > 0) {
    take({buffer.data(), static_cast<std::size_t>(count)});
    // One read a turn, so that others get theirs.
    boost::asio::post(io_.context(), again);
  } else {
    socket_.async_wait(boost::asio::local::stream_protocol::socket::wait_read, again);
  }
}

void attached_stream::take(std::string_view bytes) {
  if (ended_) {
    return;
  }
  auto good = demultiplexer_.feed(bytes, [this](stream_id stream, std::string_view chunk) {
    if (!muted_ && to_.output) {
      auto& credit = stream == stream_id::out ? out_credit_ : err_credit_;
      credit -= std::min<std::uint64_t>(credit, chunk.size());
      to_.output(stream, std::string{chunk});
    }
  });
  if (!good) {
    // What follows can't be told apart any more.
    end_of_stream();
  }
}

// -- input ---------------------------------------------------------------------------------------

void attached_stream::write(std::string bytes) {
  if (input_closed_) {
    if (!muted_ && !reported_ && to_.written) {
      to_.written(bytes.size());
    }
    return;
  }
  queue_.push_back(std::move(bytes));
  write_more();
}

void attached_stream::write_more() {
  if (writing_ || input_closed_) {
    return;
  }
  if (queue_.empty()) {
    if (closing_input_) {
      input_closed_ = true;
      error_code ignored;
      socket_.shutdown(boost::asio::local::stream_protocol::socket::shutdown_send, ignored);
    }
    return;
  }
  writing_ = true;
  boost::asio::async_write(socket_, boost::asio::buffer(queue_.front()),
                           [self = shared_from_this()](const error_code& failure, std::size_t) {
                             self->writing_ = false;
                             if (failure || self->input_closed_) {
                               self->drop_input();
                               return;
                             }
                             auto size = self->queue_.front().size();
                             self->queue_.pop_front();
                             if (!self->muted_ && !self->reported_ && self->to_.written) {
                               self->to_.written(size);
                             }
                             self->write_more();
                           });
}

void attached_stream::close_input() {
  closing_input_ = true;
  write_more();
}

void attached_stream::drop_input() {
  input_closed_ = true;
  if (writing_) {
    // Its buffer is the first of the queue; it comes back here.
    return;
  }
  std::uint64_t dropped = 0;
  for (const auto& bytes : queue_) {
    dropped += bytes.size();
  }
  queue_.clear();
  if (dropped > 0 && !muted_ && !reported_ && to_.written) {
    to_.written(dropped);
  }
}

// -- the end -------------------------------------------------------------------------------------

void attached_stream::signal(int signal) {
  if (reported_) {
    return;
  }
  if (signal == SIGHUP) {
    close();
    timer_.cancel();
    report(killed_exit_code, SIGKILL);
  }
  if (signal == SIGKILL) {
    exchange(io_, {request_.socket, "DELETE", request_.remove, {}},
             std::chrono::steady_clock::now() + removal_budget,
             [](const expected<socket_answer>&) {});
  }
}

void attached_stream::end_of_stream() {
  close();
  ask_how_it_ended(0);
}

void attached_stream::close() {
  ended_ = true;
  error_code ignored;
  socket_.close(ignored);
  drop_input();
}

void attached_stream::ask_how_it_ended(int attempt) {
  exchange(io_, {request_.socket, "GET", request_.state, {}},
           std::chrono::steady_clock::now() + state_budget,
           [self = shared_from_this(), attempt](const expected<socket_answer>& answer) {
             self->judge(attempt, answer);
           });
}

void attached_stream::judge(int attempt, const expected<socket_answer>& answer) {
  if (reported_) {
    return;
  }
  if (!answer) {
    // Without its service nobody can tell.
    report(killed_exit_code, SIGKILL);
    return;
  }
  if (answer->status == 404) {
    // Somebody removed it, which kills.
    report(killed_exit_code, 0);
    return;
  }
  auto state = answer->status == 200 ? read_rest_state(answer->body) : rest_state{};
  if (state && state->ended()) {
    report(state->exit_code, 0);
    return;
  }
  if (attempt == most_questions) {
    report(killed_exit_code, SIGKILL);
    return;
  }
  timer_.expires_after(2ms * (1 << attempt));
  timer_.async_wait([self = shared_from_this(), attempt](const error_code& cancelled) {
    if (!cancelled) {
      self->ask_how_it_ended(attempt + 1);
    }
  });
}

void attached_stream::report(std::int32_t exit_code, std::int32_t signal) {
  reported_ = true;
  // The callbacks may hold what holds us.
  auto to = std::exchange(to_, {});
  if (to.exited) {
    to.exited(exit_code, signal);
  }
}

} // namespace bulkhead::io
