#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <atomic>
#include <memory>
#include <vector>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "actors/io/http_listener.hpp"
#include "tests/io/io_support.hpp"

namespace bulkhead::testing {

/// A client that says exactly what a test wants it to, over one connection.
class raw_client {
public:
  /// `number`: of the loopback address that it comes from, 127.0.0.N.
  explicit raw_client(std::uint16_t port, std::uint8_t number = 1)
      : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + number);
    sockaddr_in to = from;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0 ||
        ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      ::close(fd_);
      throw std::runtime_error{"connect"};
    }
  }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client() { close(); }

  /// False when the server has closed its end.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads until `end` has come, or the server closes its end; what was read so far.
  const std::string& read_until(std::string_view end) {
    auto limit = std::chrono::steady_clock::now() + patience;
    while (read_.find(end) == std::string::npos && std::chrono::steady_clock::now() < limit) {
      if (!read_some()) {
        break;
      }
    }
    return read_;
  }

  /// Reads until the server closes its end; all that was read.
  const std::string& read_all() { return read_until("\xff never comes"); }

  /// Forgets what was read.
  std::string take() { return std::exchange(read_, {}); }

  bool closed() const { return closed_; }

  void close_writing() const { ::shutdown(fd_, SHUT_WR); }

  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }

private:
  bool read_some() {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) == 0) {
      return true;
    }
    std::string buffer(65536, '\0');
    auto count = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    read_.append(buffer, 0, static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  std::string read_;
  bool closed_ = false;
};

struct arrived {
  incoming_request request;
  io::http_reply_ptr reply;
};

inline constexpr std::string_view head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                         "application/json\r\nAccept: application/json, "
                                         "text/event-stream\r\n";

inline std::string request_with(std::string_view body, std::string_view more = {}) {
  return fmt::format("{}{}Content-Length: {}\r\n\r\n{}", head, more, body.size(), body);
}

inline outgoing_answer answer_with(std::string body) {
  return {200, {{"Content-Type", "application/json"}}, std::move(body)};
}

inline bool has_status(std::string_view answer, int status) {
  return answer.starts_with(fmt::format("HTTP/1.1 {} ", status));
}

/// How many answers there are in what a client read: each says this once.
inline std::size_t answers_in(std::string_view read) {
  constexpr std::string_view mark = "X-Content-Type-Options: ";
  std::size_t count = 0;
  for (auto at = read.find(mark); at != std::string_view::npos; at = read.find(mark, at + 1)) {
    ++count;
  }
  return count;
}

/// A listener whose requests the test answers.
struct listening : ::testing::Test {
  /// With `options` for the rest.
  void open(io::http_bounds bounds = {}, http_rules rules = {}) {
    options.bounds = bounds;
    options.rules = std::move(rules);
    options.budget = budget;
    auto made = io::http_listener::open(
        io, options,
        [this](incoming_request request, memory_budget::share held, io::http_reply_ptr reply) {
          held_bytes = held.bytes();
          came.change([&](auto& all) {
            all.push_back(arrived{std::move(request), std::move(reply)});
          });
        });
    ASSERT_TRUE(made) << made.error().message;
    listener = *made;
  }

  void TearDown() override {
    if (!listener) {
      return;
    }
    came.change([](auto& all) { all.clear(); });
    monitored<bool> empty;
    listener->close(patience, [&] { empty.change([](bool& done) { done = true; }); });
    EXPECT_TRUE(empty.wait([](bool done) { return done; })) << "connections are left";
    // What was under way on the last of them has been cancelled, and comes to its end after that.
    monitored<bool> settled;
    boost::asio::post(io.context(), [&] { settled.change([](bool& done) { done = true; }); });
    EXPECT_TRUE(settled.wait([](bool done) { return done; }));
    EXPECT_EQ(budget->used(), 0) << "bytes are charged to nobody";
  }

  /// The request number `index`; waits for it.
  arrived request(std::size_t index) {
    EXPECT_TRUE(came.wait([&](const auto& all) { return all.size() > index; }));
    return came.get().at(index);
  }

  /// What the listener says to a client that sends this, before it closes.
  std::string refusal_of(std::string_view sent) {
    raw_client client{listener->port()};
    client.send(sent);
    auto said = client.read_all();
    EXPECT_TRUE(client.closed()) << "the connection stays open after " << sent.substr(0, 1000);
    return said;
  }

  /// Is a client served that does nothing wrong?
  void expect_service() {
    auto index = came.get().size();
    raw_client client{listener->port()};
    client.send(request_with("fine"));
    request(index).reply->answer(answer_with("served"));
    EXPECT_TRUE(has_status(client.read_until("served"), 200)) << client.take();
  }

  std::shared_ptr<memory_budget> budget = std::make_shared<memory_budget>(8 * mebibyte);
  io::http_listener_options options;
  io::io_thread io;
  std::shared_ptr<io::http_listener> listener;
  monitored<std::vector<arrived>> came;
  std::atomic<std::size_t> held_bytes = 0;
};

inline constexpr std::string_view garbage = "garbage\r\n\r\n";

} // namespace bulkhead::testing
