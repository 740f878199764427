#include "actors/io/http_exchange.hpp"

#include <memory>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include "actors/io/http_socket.hpp"

namespace bulkhead::io {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

class exchange_in_flight : public std::enable_shared_from_this<exchange_in_flight> {
public:
  exchange_in_flight(io_thread& io, socket_request request,
                     std::function<void(expected<socket_answer>)> done)
      : stream_{io.context()}, socket_{std::move(request.socket)}, done_{std::move(done)},
        request_{make_request(http::string_to_verb(request.method), request.target,
                              std::move(request.body))} {
    request_.set(http::field::connection, "close");
    parser_.body_limit(longest_http_body);
  }

  void start(std::chrono::steady_clock::time_point due) {
    auto endpoint = endpoint_of(socket_);
    if (!endpoint) {
      boost::asio::post(stream_.get_executor(), [self = shared_from_this(), endpoint] {
        self->done_(tl::unexpected{endpoint.error()});
      });
      return;
    }
    stream_.expires_at(due);
    stream_.async_connect(*endpoint, [self = shared_from_this()](const error_code& failure) {
      failure ? self->fail_with(failure, false) : self->send();
    });
  }

private:
  void send() {
    http::async_write(stream_, request_,
                      [self = shared_from_this()](const error_code& failure, std::size_t) {
                        failure ? self->fail_with(failure, true) : self->receive();
                      });
  }

  void receive() {
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const error_code& failure, std::size_t) {
                       failure ? self->fail_with(failure, true) : self->finish();
                     });
  }

  void finish() {
    auto answer = parser_.release();
    auto version = answer["Libpod-API-Version"];
    done_(socket_answer{answer.result_int(), std::move(answer.body()),
                        std::string{version.data(), version.size()}});
  }

  void fail_with(const error_code& failure, bool connected) {
    done_(tl::unexpected{explain(failure, socket_, connected)});
  }

  socket_stream stream_;
  std::string socket_;
  std::function<void(expected<socket_answer>)> done_;
  http_request request_;
  http::response_parser<http::string_body> parser_;
  boost::beast::flat_buffer buffer_{longest_http_body};
};

} // namespace

expected<boost::asio::local::stream_protocol::endpoint> endpoint_of(const std::string& path) {
  try {
    return boost::asio::local::stream_protocol::endpoint{path};
  } catch (const boost::system::system_error& wrong) {
    return fail(errc::closed, fmt::format("connect to \"{}\": {}", path, wrong.code().message()));
  }
}

http_request make_request(http::verb method, const std::string& target, std::string body) {
  http_request request{method, target, 11};
  request.set(http::field::host, "localhost");
  request.set(http::field::user_agent, "bulkhead/" BULKHEAD_VERSION);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
  }
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

error explain(const error_code& failure, const std::string& socket, bool connected) {
  if (failure == boost::beast::error::timeout) {
    return {errc::timeout, fmt::format("the service at \"{}\" didn't answer in time", socket)};
  }
  if (failure == http::error::body_limit || failure == http::error::buffer_overflow) {
    return {errc::too_large, fmt::format("the service at \"{}\" answered with over {} bytes",
                                         socket, longest_http_body)};
  }
  if (!connected) {
    return {errc::closed, fmt::format("connect to \"{}\": {}", socket, failure.message())};
  }
  return {errc::runtime_lost,
          fmt::format("the connection to \"{}\" broke: {}", socket, failure.message())};
}

void exchange(io_thread& io, socket_request request, std::chrono::steady_clock::time_point due,
              std::function<void(expected<socket_answer>)> done) {
  std::make_shared<exchange_in_flight>(io, std::move(request), std::move(done))->start(due);
}

} // namespace bulkhead::io
