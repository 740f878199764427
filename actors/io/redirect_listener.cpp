#include "actors/io/redirect_listener.hpp"

#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

namespace bulkhead::io {

using namespace std::chrono_literals;
namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

namespace {

constexpr std::string_view callback_path = "/callback";
constexpr auto exchange_budget = 5s;
constexpr auto pause = 100ms;
constexpr std::uint32_t longest_header = 32 * 1024;
/// A browser opens a few; the rest waits in the kernel's queue.
constexpr int most_connections = 16;

constexpr std::string_view done_page =
    "<!doctype html><meta charset=utf-8><title>Bulkhead</title>"
    "<p>Bulkhead has its answer. You can close this page and go back to the terminal.</p>\n";
constexpr std::string_view refused_page =
    "<!doctype html><meta charset=utf-8><title>Bulkhead</title>"
    "<p>This doesn't belong to the login that Bulkhead waits for.</p>\n";

class listener;

/// One connection of the browser's: a request, an answer.
struct visit : std::enable_shared_from_this<visit> {
  visit(listener& to, tcp::socket socket) : owner{to}, stream{std::move(socket)} {}

  void start();
  void answer(http::status status, std::string_view page, bool last);

  listener& owner;
  boost::beast::tcp_stream stream;
  boost::beast::flat_buffer buffer{longest_header};
  http::request_parser<http::empty_body> parser;
  http::response<http::string_body> response;
};

class listener : public redirect_listener {
public:
  expected<void> listen(std::uint16_t port) {
    error_code failure;
    tcp::endpoint here{asio::ip::address_v4::loopback(), port};
    acceptor_.open(here.protocol(), failure);
    if (!failure) {
      acceptor_.bind(here, failure);
    }
    if (!failure) {
      acceptor_.listen(most_connections, failure);
    }
    if (failure) {
      return fail(errc::unavailable,
                  fmt::format("listen on 127.0.0.1 port {} for the browser's answer: {}", port,
                              failure.message()));
    }
    return {};
  }

  std::string uri() const override {
    return fmt::format("http://127.0.0.1:{}{}", acceptor_.local_endpoint().port(), callback_path);
  }

  expected<std::string> wait(const std::function<bool(std::string_view query)>& accepts,
                             std::chrono::steady_clock::time_point until,
                             const std::function<bool()>& cancelled) override {
    accepts_ = accepts;
    accept();
    while (!answered_) {
      if (cancelled()) {
        return fail(errc::cancelled, "interrupted");
      }
      if (std::chrono::steady_clock::now() >= until) {
        return fail(errc::timeout, "no answer came from the browser in time");
      }
      context_.restart();
      context_.run_for(pause);
    }
    return *query_;
  }

  std::uint32_t refused() const override { return refused_; }

  void take(visit& from);
  void answered() { answered_ = true; }
  void left() {
    --visits_;
    if (!accepting_) {
      accept();
    }
  }

private:
  void accept() {
    accepting_ = visits_ < most_connections;
    if (!accepting_) {
      return;
    }
    acceptor_.async_accept([this](error_code failure, tcp::socket socket) {
      if (failure == asio::error::operation_aborted) {
        return;
      }
      if (!failure) {
        ++visits_;
        std::make_shared<visit>(*this, std::move(socket))->start();
      }
      accept();
    });
  }

  // Before the context, whose end destroys visits.
  std::function<bool(std::string_view)> accepts_;
  std::optional<std::string> query_;
  std::uint32_t refused_ = 0;
  int visits_ = 0;
  bool accepting_ = true;
  bool answered_ = false;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
};

void visit::start() {
  parser.header_limit(longest_header);
  parser.body_limit(0);
  stream.expires_after(exchange_budget);
  http::async_read(stream, buffer, parser,
                   [self = shared_from_this()](error_code failure, std::size_t) {
                     if (failure) {
                       self->owner.left();
                       return;
                     }
                     self->owner.take(*self);
                   });
}

void visit::answer(http::status status, std::string_view page, bool last) {
  response = {status, 11, std::string{page}};
  response.set(http::field::content_type, "text/html; charset=utf-8");
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.keep_alive(false);
  response.prepare_payload();
  http::async_write(stream, response, [self = shared_from_this(), last](error_code, std::size_t) {
    error_code ignored;
    self->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    self->owner.left();
    if (last) {
      self->owner.answered();
    }
  });
}

void listener::take(visit& from) {
  const auto& request = from.parser.get();
  std::string target{request.target()};
  auto mark = target.find('?');
  if (std::string_view{target}.substr(0, mark) != callback_path) {
    from.answer(http::status::not_found, refused_page, false);
    return;
  }
  auto query = mark == std::string::npos ? std::string{} : target.substr(mark + 1);
  if (request.method() != http::verb::get || query_ || !accepts_(query)) {
    ++refused_;
    from.answer(http::status::bad_request, refused_page, false);
    return;
  }
  query_ = std::move(query);
  from.answer(http::status::ok, done_page, true);
}

} // namespace

expected<std::unique_ptr<redirect_listener>> redirect_listener::open(std::uint16_t port) {
  auto made = std::make_unique<listener>();
  if (auto listening = made->listen(port); !listening) {
    return tl::unexpected{listening.error()};
  }
  return std::unique_ptr<redirect_listener>{std::move(made)};
}

} // namespace bulkhead::io
