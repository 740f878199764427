#include "actors/io/http_stream.hpp"

#include <utility>

#include <boost/asio/ssl/stream.hpp>

namespace bulkhead::io {

namespace {

using boost::asio::ip::tcp;

class plain_stream : public http_stream {
public:
  explicit plain_stream(socket connected) : http_stream{std::move(connected)} {}

  void start(std::function<void(const failure&)> told) override { told({}); }

  void read(boost::asio::mutable_buffer into, transferred told) override {
    socket_.async_read_some(into, std::move(told));
  }

  void write(boost::asio::const_buffer from, transferred told) override {
    socket_.async_write_some(from, std::move(told));
  }

  void end_writing(std::shared_ptr<void> /*owner*/) override {
    failure ignored;
    socket_.shutdown(socket::shutdown_send, ignored);
  }
};

class tls_stream : public http_stream {
public:
  tls_stream(socket connected, tls_context_ptr keys)
      : http_stream{std::move(connected)}, keys_{std::move(keys)}, tls_{socket_, *keys_} {}

  void start(std::function<void(const failure&)> told) override {
    tls_.async_handshake(boost::asio::ssl::stream_base::server, std::move(told));
  }

  void read(boost::asio::mutable_buffer into, transferred told) override {
    tls_.async_read_some(into, std::move(told));
  }

  void write(boost::asio::const_buffer from, transferred told) override {
    tls_.async_write_some(from, std::move(told));
  }

  void end_writing(std::shared_ptr<void> owner) override {
    // It waits for the client's own farewell after ours is out; the client learns of the end by
    // ours.
    tls_.async_shutdown([this, owner = std::move(owner)](const failure&) {
      failure ignored;
      socket_.shutdown(socket::shutdown_send, ignored);
    });
  }

private:
  tls_context_ptr keys_;
  boost::asio::ssl::stream<socket&> tls_;
};

} // namespace

http_stream::http_stream(socket connected) : socket_{std::move(connected)} {
  failure ignored;
  socket_.set_option(tcp::no_delay{true}, ignored);
}

bool http_stream::has_unread() {
  failure ignored;
  return socket_.available(ignored) > 0;
}

void http_stream::close() {
  failure ignored;
  socket_.close(ignored);
}

std::unique_ptr<http_stream> make_http_stream(tcp::socket connected, const tls_context_ptr& keys) {
  if (keys) {
    return std::make_unique<tls_stream>(std::move(connected), keys);
  }
  return std::make_unique<plain_stream>(std::move(connected));
}

} // namespace bulkhead::io
