#include "actors/io/attached_stream.hpp"

#include <atomic>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "actors/io/http_exchange.hpp"
#include "tests/io/io_support.hpp"

/// A container's stdio over a unix socket, and plain exchanges, against a small server on threads.

namespace bulkhead {
namespace {

using namespace testing;
using local = boost::asio::local::stream_protocol;

std::string answer(int status, const std::string& body, const std::string& more = {}) {
  return fmt::format(
      "HTTP/1.1 {} Text\r\nLibpod-API-Version: 4.3.1\r\n{}Content-Length: {}\r\n\r\n{}", status,
      more, body.size(), body);
}

std::string chunk(char stream, const std::string& text) {
  auto size = text.size();
  return std::string{stream,
                     0,
                     0,
                     0,
                     static_cast<char>(size >> 24 & 0xff),
                     static_cast<char>(size >> 16 & 0xff),
                     static_cast<char>(size >> 8 & 0xff),
                     static_cast<char>(size & 0xff)} +
         text;
}

/// One connection to the server, read and written by a handler on its thread.
struct connection {
  explicit connection(local::socket of) : socket{std::move(of)} {}

  /// The head of the request, and its body by Content-Length.
  std::string read_request() {
    boost::system::error_code failure;
    boost::asio::streambuf buffer;
    boost::asio::read_until(socket, buffer, "\r\n\r\n", failure);
    std::string text{std::istreambuf_iterator<char>{&buffer}, {}};
    auto at = text.find("Content-Length: ");
    auto end = text.find("\r\n\r\n") + 4;
    if (at != std::string::npos && !failure) {
      auto size = std::stoul(text.substr(at + 16));
      std::string rest(size - std::min(size, text.size() - end), '\0');
      boost::asio::read(socket, boost::asio::buffer(rest), failure);
      text += rest;
    }
    return text;
  }

  bool write(const std::string& text) {
    boost::system::error_code failure;
    boost::asio::write(socket, boost::asio::buffer(text), failure);
    return !failure;
  }

  /// What comes until the peer closes its end, or until there are `most` bytes.
  std::string read(std::size_t most = SIZE_MAX) {
    std::string result;
    std::array<char, 4096> buffer{};
    boost::system::error_code failure;
    while (result.size() < most && !failure) {
      auto count = socket.read_some(boost::asio::buffer(buffer), failure);
      result.append(buffer.data(), count);
    }
    return result;
  }

  local::socket socket;
};

/// Serves each connection on a thread of its own.
class small_server {
public:
  using handler = std::function<void(connection&, const std::string& request)>;

  explicit small_server(handler handle)
      : handle_{std::move(handle)}, acceptor_{context_, local::endpoint{path()}}, thread_{[this] {
          serve();
        }} {}

  ~small_server() {
    stopped_ = true;
    boost::system::error_code ignored;
    local::socket last{context_};
    last.connect(local::endpoint{path()}, ignored);
    thread_.join();
    for (auto& each : handlers_) {
      each.join();
    }
  }

  std::string path() const { return folder_ / "s"; }

private:
  void serve() {
    for (;;) {
      boost::system::error_code failure;
      auto socket = acceptor_.accept(failure);
      if (failure || stopped_) {
        return;
      }
      handlers_.emplace_back([this, socket = std::move(socket)]() mutable {
        connection peer{std::move(socket)};
        handle_(peer, peer.read_request());
      });
    }
  }

  temporary_folder folder_;
  boost::asio::io_context context_;
  handler handle_;
  local::acceptor acceptor_;
  std::atomic<bool> stopped_ = false;
  std::vector<std::thread> handlers_;
  std::thread thread_;
};

bool asks_for(const std::string& request, const std::string& start) {
  return request.starts_with(start);
}

struct story {
  std::string out;
  std::string err;
  std::uint64_t written = 0;
  std::optional<std::pair<std::int32_t, std::int32_t>> exit;
};

struct attached_stream_test : ::testing::Test {
  ~attached_stream_test() override { io.stop(); }

  expected<socket_answer> exchange(const std::string& socket, std::string body = {},
                                   std::chrono::milliseconds time = patience) {
    std::promise<expected<socket_answer>> done;
    auto result = done.get_future();
    boost::asio::post(io.context(), [&] {
      io::exchange(io, {socket, body.empty() ? "GET" : "POST", "/x?y=z", body},
                   std::chrono::steady_clock::now() + time,
                   [&](expected<socket_answer> answer) { done.set_value(std::move(answer)); });
    });
    return result.get();
  }

  expected<std::shared_ptr<io::attached_stream>> attach(const std::string& socket) {
    std::promise<expected<std::shared_ptr<io::attached_stream>>> done;
    auto result = done.get_future();
    boost::asio::post(io.context(), [&] {
      io::attached_stream::open(io, {socket, "/attach", "/state", "/remove"},
                                [&](auto opened) { done.set_value(std::move(opened)); });
    });
    return result.get();
  }

  /// Attaches and begins.
  std::shared_ptr<io::attached_stream> begin(const std::string& socket,
                                             std::uint64_t credit = mebibyte) {
    auto opened = attach(socket);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    auto stream = *opened;
    on_io(io, [&] {
      io::child_events events;
      events.output = [this](stream_id id, const std::string& bytes) {
        heard.change([&](story& now) { (id == stream_id::out ? now.out : now.err) += bytes; });
      };
      events.written = [this](std::uint64_t bytes) {
        heard.change([&](story& now) { now.written += bytes; });
      };
      events.exited = [this](std::int32_t code, std::int32_t signal) {
        heard.change([&](story& now) { now.exit = {code, signal}; });
      };
      stream->begin(std::move(events), credit);
      return 0;
    });
    return stream;
  }

  bool ends_with(std::int32_t code, std::int32_t signal) {
    return heard.wait([](const story& now) { return now.exit.has_value(); }) &&
           heard.get().exit == std::pair{code, signal};
  }

  monitored<story> heard;
  io::io_thread io;
};

const std::string upgraded = "HTTP/1.1 101 UPGRADED\r\nContent-Type: "
                             "application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n"
                             "Upgrade: tcp\r\n\r\n";
const std::string exited_with_3 = R"({"State": {"Status": "exited", "ExitCode": 3}})";

// -- exchanges -----------------------------------------------------------------------------------

TEST_F(attached_stream_test, an_exchange_carries_body_status_and_version) {
  small_server server{[](connection& peer, const std::string& request) {
    EXPECT_TRUE(asks_for(request, "POST /x?y=z HTTP/1.1\r\n"));
    EXPECT_TRUE(request.ends_with("\r\n\r\n{\"a\":1}"));
    peer.write(answer(201, "made"));
  }};
  auto got = exchange(server.path(), "{\"a\":1}");
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, (socket_answer{201, "made", "4.3.1"}));
}

TEST_F(attached_stream_test, an_exchange_fails_with_what_went_wrong) {
  temporary_folder folder;
  EXPECT_EQ(exchange(folder / "nobody").error().code, errc::closed);
  EXPECT_EQ(exchange(folder / std::string(200, 'x')).error().code, errc::closed);
  small_server hangs_up{[](connection&, const std::string&) {}};
  EXPECT_EQ(exchange(hangs_up.path()).error().code, errc::runtime_lost);
  small_server floods{[](connection& peer, const std::string&) {
    peer.write(answer(200, std::string(2 * mebibyte, 'x')));
  }};
  auto flood = exchange(floods.path());
  ASSERT_FALSE(flood) << flood->status << " " << flood->body.size();
  EXPECT_EQ(flood.error().code, errc::too_large);
  small_server silent{[](connection& peer, const std::string&) { peer.read(); }};
  EXPECT_EQ(exchange(silent.path(), {}, 50ms).error().code, errc::timeout);
}

// -- streams -------------------------------------------------------------------------------------

TEST_F(attached_stream_test, output_of_both_streams_then_the_containers_exit_code) {
  small_server server{[](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      // Its first bytes come with the answer.
      peer.write(upgraded + chunk(1, "first\n") + chunk(2, "war").substr(0, 5));
      peer.write(chunk(2, "war").substr(5) + chunk(1, "second\n"));
    } else {
      peer.write(answer(200, exited_with_3));
    }
  }};
  auto stream = begin(server.path());
  EXPECT_TRUE(ends_with(3, 0));
  EXPECT_EQ(heard.get().out, "first\nsecond\n");
  EXPECT_EQ(heard.get().err, "war");
}

TEST_F(attached_stream_test, a_refusal_to_attach_tells_why) {
  small_server server{[](connection& peer, const std::string&) {
    peer.write(answer(404, R"({"message": "no such container"})"));
  }};
  auto opened = attach(server.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), (error{errc::unavailable, "no such container"}));
  temporary_folder folder;
  EXPECT_EQ(attach(folder / "nobody").error().code, errc::closed);
}

TEST_F(attached_stream_test, input_arrives_and_its_end_does) {
  monitored<std::string> input;
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded);
      auto text = peer.read();
      input.change([&](std::string& all) { all = text; });
    } else {
      peer.write(answer(200, exited_with_3));
    }
  }};
  auto stream = begin(server.path());
  std::string large(3 * mebibyte, 'x');
  on_io(io, [&] {
    stream->write("one\n");
    stream->write(large);
    stream->close_input();
    return 0;
  });
  EXPECT_TRUE(ends_with(3, 0));
  EXPECT_TRUE(input.wait([&](const auto& all) { return all == "one\n" + large; }));
  EXPECT_EQ(heard.get().written, 4 + large.size());
  on_io(io, [&] {
    stream->write("late");
    return 0;
  });
  EXPECT_EQ(heard.get().written, 4 + large.size());
}

TEST_F(attached_stream_test, no_more_is_read_than_the_owner_has_given_credit_for) {
  std::string large(8 * mebibyte, 'x');
  std::atomic<bool> all_written = false;
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded);
      all_written = peer.write(chunk(1, large));
    } else {
      peer.write(answer(200, exited_with_3));
    }
  }};
  auto stream = begin(server.path(), 100 * kibibyte);
  EXPECT_TRUE(heard.wait([](const story& now) { return now.out.size() > 90 * kibibyte; }));
  std::this_thread::sleep_for(50ms); // for what must not come
  EXPECT_LE(heard.get().out.size(), 100 * kibibyte);
  EXPECT_FALSE(all_written);
  boost::asio::post(io.context(), [&] { stream->add_credit(stream_id::out, 16 * mebibyte); });
  boost::asio::post(io.context(), [&] { stream->add_credit(stream_id::err, 16 * mebibyte); });
  EXPECT_TRUE(ends_with(3, 0));
  EXPECT_EQ(heard.get().out.size(), large.size());
}

TEST_F(attached_stream_test, a_muted_one_is_read_to_its_end) {
  std::string large(8 * mebibyte, 'x');
  small_server server{[&](connection& peer, const std::string& request) {
    peer.write(asks_for(request, "POST /attach ") ? upgraded + chunk(1, large)
                                                  : answer(200, exited_with_3));
  }};
  auto stream = begin(server.path(), kibibyte);
  boost::asio::post(io.context(), [&] { stream->mute(); });
  EXPECT_TRUE(ends_with(3, 0));
}

TEST_F(attached_stream_test, the_end_is_asked_for_until_the_service_knows_of_it) {
  std::atomic<int> asked = 0;
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded);
    } else {
      EXPECT_TRUE(asks_for(request, "GET /state "));
      peer.write(answer(200, ++asked < 4 ? R"({"State": {"Status": "running"}})" : exited_with_3));
    }
  }};
  auto stream = begin(server.path());
  EXPECT_TRUE(ends_with(3, 0));
  EXPECT_EQ(asked, 4);
}

TEST_F(attached_stream_test, a_removed_container_was_killed) {
  small_server server{[&](connection& peer, const std::string& request) {
    peer.write(asks_for(request, "POST /attach ") ? upgraded : answer(404, "{}"));
  }};
  auto stream = begin(server.path());
  EXPECT_TRUE(ends_with(137, 0));
}

TEST_F(attached_stream_test, without_its_service_a_container_is_lost) {
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded);
    }
  }};
  auto stream = begin(server.path());
  EXPECT_TRUE(ends_with(137, SIGKILL));
}

TEST_F(attached_stream_test, it_can_be_ended_while_the_service_hangs) {
  for (bool at_its_end : {false, true}) {
    std::promise<void> over;
    small_server hangs{
        [&, is_over = over.get_future().share()](connection& peer, const std::string& request) {
          if (asks_for(request, "POST /attach ")) {
            peer.write(upgraded + chunk(1, "out"));
          }
          if (!asks_for(request, "POST /attach ") || !at_its_end) {
            is_over.wait_for(patience);
          }
        }};
    heard.change([](story& now) { now = {}; });
    auto stream = begin(hangs.path());
    EXPECT_TRUE(heard.wait([](const story& now) { return now.out == "out"; }));
    on_io(io, [&] {
      stream->signal(SIGHUP);
      return 0;
    });
    EXPECT_TRUE(heard.get().exit == std::pair(137, SIGKILL));
    over.set_value();
  }
}

TEST_F(attached_stream_test, what_is_not_framed_ends_the_stream) {
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded + chunk(1, "good") + "HTTP/1.1 500 what is this?");
      peer.read();
    } else {
      peer.write(answer(200, exited_with_3));
    }
  }};
  auto stream = begin(server.path());
  EXPECT_TRUE(ends_with(3, 0));
  EXPECT_EQ(heard.get().out, "good");
}

TEST_F(attached_stream_test, only_a_kill_removes_the_container) {
  std::atomic<int> removals = 0;
  std::promise<void> removed;
  auto is_removed = removed.get_future();
  small_server server{[&](connection& peer, const std::string& request) {
    if (asks_for(request, "POST /attach ")) {
      peer.write(upgraded);
      is_removed.wait_for(patience);
    } else if (asks_for(request, "DELETE /remove ")) {
      peer.write(answer(200, "[]"));
      if (++removals == 1) {
        removed.set_value();
      }
    } else {
      peer.write(answer(404, "{}"));
    }
  }};
  auto stream = begin(server.path());
  on_io(io, [&] {
    stream->signal(SIGTERM);
    stream->signal(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(ends_with(137, 0));
  EXPECT_EQ(removals, 1);
}

} // namespace
} // namespace bulkhead
