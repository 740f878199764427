#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

namespace bulkhead::testing {

/// A connection of a web server whose every byte the test decides. Blocking, on a thread of its
/// own.
class web_connection {
public:
  explicit web_connection(boost::asio::ip::tcp::socket socket) : socket_{std::move(socket)} {}

  /// The next request's head and body (by Content-Length); false at the connection's end.
  bool read() {
    boost::system::error_code failure;
    head.clear();
    body.clear();
    auto size =
        boost::asio::read_until(socket_, boost::asio::dynamic_buffer(held_), "\r\n\r\n", failure);
    if (failure) {
      return false;
    }
    head = held_.substr(0, size);
    held_.erase(0, size);
    auto length = header("content-length");
    auto wanted = length.empty() ? 0 : std::stoul(length);
    if (held_.size() < wanted) {
      boost::asio::read(socket_, boost::asio::dynamic_buffer(held_),
                        boost::asio::transfer_exactly(wanted - held_.size()), failure);
    }
    body = held_.substr(0, wanted);
    held_.erase(0, wanted);
    return !failure;
  }

  /// The value of a header of the last request (the name in lower case); empty if it has none.
  std::string header(const std::string& name) const {
    std::string lower = head;
    for (auto& c : lower) {
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    auto at = lower.find("\r\n" + name + ":");
    if (at == std::string::npos) {
      return {};
    }
    at += name.size() + 3;
    auto text = head.substr(at, head.find("\r\n", at) - at);
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  }

  /// False once the client is gone.
  bool write(const std::string& bytes) {
    boost::system::error_code failure;
    boost::asio::write(socket_, boost::asio::buffer(bytes), failure);
    return !failure;
  }

  bool answer(const std::string& status, const std::string& headers, const std::string& text) {
    return write("HTTP/1.1 " + status + "\r\n" + headers +
                 "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  }

  bool chunk(const std::string& bytes) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return write(size + bytes + "\r\n");
  }

  /// Waits until the client closes its end.
  void wait_for_end() {
    boost::system::error_code failure;
    char byte = 0;
    while (!failure) {
      boost::asio::read(socket_, boost::asio::buffer(&byte, 1), failure);
    }
  }

  boost::asio::ip::tcp::socket& socket() { return socket_; }

  std::string head;
  std::string body;

private:
  boost::asio::ip::tcp::socket socket_;
  std::string held_;
};

/// Listens on a port of 127.0.0.1; `serve` is called for each connection.
class web_server {
public:
  explicit web_server(std::function<void(web_connection&)> serve)
      : serve_{std::move(serve)}, acceptor_{context_,
                                            {boost::asio::ip::make_address("127.0.0.1"), 0}},
        port_{acceptor_.local_endpoint().port()} {
    thread_ = std::thread{[this] { accept(); }};
  }

  ~web_server() {
    stopping_ = true;
    boost::system::error_code ignored;
    // Wakes the thread up.
    boost::asio::ip::tcp::socket socket{context_};
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port_}, ignored);
    thread_.join();
    {
      std::lock_guard guard{mutex_};
      for (const auto& each : connections_) {
        each->socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
      }
    }
    for (auto& each : threads_) {
      each.join();
    }
  }

  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  std::string named_url(const std::string& host, const std::string& path) const {
    return "http://" + host + ":" + std::to_string(port_) + path;
  }
  std::size_t accepted() const { return accepted_; }

private:
  void accept() {
    while (true) {
      boost::asio::ip::tcp::socket socket{context_};
      boost::system::error_code failure;
      acceptor_.accept(socket, failure);
      if (stopping_ || failure) {
        return;
      }
      ++accepted_;
      auto connection = std::make_shared<web_connection>(std::move(socket));
      std::lock_guard guard{mutex_};
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] {
        serve_(*connection);
        boost::system::error_code ignored;
        connection->socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
      });
    }
  }

  std::function<void(web_connection&)> serve_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  unsigned short port_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> accepted_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<web_connection>> connections_;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

} // namespace bulkhead::testing
