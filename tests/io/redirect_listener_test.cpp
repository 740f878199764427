#include "actors/io/redirect_listener.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace bulkhead::io {
namespace {

using namespace std::chrono_literals;

std::uint16_t port_of(const redirect_listener& listener) {
  auto uri = listener.uri();
  return static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)));
}

int connect_to(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// Sends bytes and reads until the other end closes.
std::string ask(std::uint16_t port, const std::string& bytes) {
  int fd = connect_to(port);
  EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t count; (count = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(fd);
  return answer;
}

std::string get(std::uint16_t port, const std::string& target) {
  return ask(port, "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
}

struct redirect_listener_test : ::testing::Test {
  redirect_listener_test() : listener{redirect_listener::open(0).value()} {}

  expected<std::string> wait(std::chrono::milliseconds patience = 60s) {
    return listener->wait([](std::string_view query) { return query == "code=C&state=S"; },
                          std::chrono::steady_clock::now() + patience,
                          [this] { return cancelled.load(); });
  }

  std::unique_ptr<redirect_listener> listener;
  std::atomic<bool> cancelled{false};
};

TEST_F(redirect_listener_test, listens_on_loopback) {
  EXPECT_TRUE(listener->uri().starts_with("http://127.0.0.1:"));
  EXPECT_TRUE(listener->uri().ends_with("/callback"));
}

TEST_F(redirect_listener_test, takes_the_answer_that_fits_and_no_other) {
  auto port = port_of(*listener);
  std::vector<std::string> answers;
  std::thread browser{[&] {
    answers.push_back(get(port, "/favicon.ico"));
    answers.push_back(get(port, "/callback"));
    answers.push_back(get(port, "/callback?code=C&state=<script>wrong</script>"));
    answers.push_back(ask(port, "POST /callback?code=C&state=S HTTP/1.1\r\nHost: x\r\n\r\n"));
    answers.push_back(get(port, "/callback?code=C&state=S"));
  }};
  auto query = wait();
  browser.join();
  EXPECT_EQ(query, "code=C&state=S");
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(answers[0].starts_with("HTTP/1.1 404"));
  for (int i : {1, 2, 3}) {
    EXPECT_TRUE(answers[static_cast<std::size_t>(i)].starts_with("HTTP/1.1 400"));
  }
  EXPECT_TRUE(answers[4].starts_with("HTTP/1.1 200"));
  EXPECT_EQ(listener->refused(), 3u);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.find("state"), std::string::npos);
    EXPECT_EQ(answer.find("<script>"), std::string::npos);
    EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  }
}

TEST_F(redirect_listener_test, is_kept_by_no_connection_that_says_nothing) {
  auto port = port_of(*listener);
  std::vector<int> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(connect_to(port));
  }
  std::string answer;
  std::thread browser{[&] {
    ask(port, "nonsense\r\n\r\n");
    answer = get(port, "/callback?code=C&state=S");
  }};
  EXPECT_TRUE(wait());
  browser.join();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
  for (int fd : silent) {
    ::close(fd);
  }
}

TEST_F(redirect_listener_test, gives_up_in_time) {
  EXPECT_EQ(wait(1ms).error().code, errc::timeout);
}

TEST_F(redirect_listener_test, gives_up_when_told_to) {
  cancelled = true;
  EXPECT_EQ(wait().error().code, errc::cancelled);
}

TEST_F(redirect_listener_test, says_when_its_port_is_taken) {
  auto second = redirect_listener::open(port_of(*listener));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::unavailable);
}

} // namespace
} // namespace bulkhead::io
