#include "actors/http_host.hpp"

#include <map>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "tests/io/io_support.hpp"
#include "tests/io/web_server.hpp"
#include "tests/support/actor_config.hpp"

namespace bulkhead {
namespace {

using namespace testing;

struct config : actor_config {
  config() { set("scheduler.max-threads", 2); }
};

/// What an owner heard of its exchange.
struct story {
  std::optional<http_head> head;
  std::string body;
  std::optional<error> end;
  bool after_end = false;
};

using story_ptr = std::shared_ptr<monitored<story>>;

http_owner_actor::behavior_type listen(http_owner_actor::pointer, story_ptr heard) {
  return {
      [heard](const http_head& head) {
        heard->change([&](story& now) {
          now.head = head;
          now.after_end |= now.end.has_value();
        });
      },
      [heard](const http_body& body) {
        heard->change([&](story& now) {
          now.body += body.bytes;
          now.after_end |= now.end.has_value();
        });
      },
      [heard](const http_end& end) { heard->change([&](story& now) { now.end = end.reason; }); },
  };
}

struct http_host_test : ::testing::Test {
  http_host_test() {
    host = system.spawn(http_host, &io, environment_lookup{[this](std::string_view name) {
                          auto found = variables.find(std::string{name});
                          return found == variables.end() ? std::nullopt
                                                          : std::optional{found->second};
                        }});
    owner = system.spawn(listen, heard);
  }

  ~http_host_test() override {
    caf::anon_send_exit(owner, caf::exit_reason::kill);
    caf::anon_send_exit(host, caf::exit_reason::kill);
    caf::scoped_actor self{system};
    self->wait_for(owner, host);
    host = nullptr;
    io.stop();
  }

  expected<http_response> call(const http_request& request,
                               std::chrono::milliseconds time = patience) {
    expected<http_response> result;
    caf::scoped_actor self{system};
    self->request(host, patience + 5s, call_atom::value, request,
                  deadline::at(std::chrono::steady_clock::now() + time))
        .receive(
            [&](http_response& answer) { result = std::move(answer); },
            [&](const caf::error& reason) { result = tl::unexpected{from_caf(reason, "test")}; });
    return result;
  }

  void open(http_request request, exchange_id id = 1) {
    request.most_bytes = UINT64_MAX;
    caf::anon_send(host, open_atom::value, id, std::move(request), owner);
  }

  static http_request post(const std::string& url, std::string body) {
    http_request request;
    request.method = "POST";
    request.url = url;
    request.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer secret-1"}};
    request.body = std::move(body);
    return request;
  }

  static http_request get(const std::string& url) {
    http_request request;
    request.url = url;
    return request;
  }

  std::map<std::string, std::string> variables;
  io::io_thread io; // outlives the actors, whose exchanges live on it
  config cfg;
  caf::actor_system system{cfg};
  http_host_impl_actor host;
  story_ptr heard = std::make_shared<monitored<story>>();
  http_owner_actor owner;
};

TEST_F(http_host_test, a_request_arrives_and_is_answered) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("201 Created", "X-Thing: a b\r\nX-Thing: c\r\n",
                  peer.head.substr(0, peer.head.find("\r\n")) + "|" + peer.header("authorization") +
                      "|" + peer.header("content-type") + "|" + peer.header("expect") + "|" +
                      peer.body);
    }
  }};
  auto answer = call(post(server.url("/a?b=c"), std::string(3 * mebibyte, 'x')));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::too_large); // 1 MiB unless asked for more
  auto request = post(server.url("/a?b=c"), R"({"a":1})");
  answer = call(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 201U);
  EXPECT_EQ(answer->body, R"(POST /a?b=c HTTP/1.1|Bearer secret-1|application/json||{"a":1})");
  EXPECT_EQ(answer->headers[0], (http_header{"X-Thing", "a b"}));
  EXPECT_EQ(answer->headers[1], (http_header{"X-Thing", "c"}));
}

TEST_F(http_host_test, a_connection_is_used_again) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("200 OK", "", "fine");
    }
  }};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(call(get(server.url())));
  }
  EXPECT_EQ(server.accepted(), 1U);
}

TEST_F(http_host_test, a_request_with_a_body_is_never_sent_twice) {
  std::atomic<int> posts{0};
  web_server server{[&](web_connection& peer) {
    while (peer.read()) {
      if (peer.body == "go") {
        ++posts;
        return; // without a word, on a connection that served before
      }
      peer.answer("200 OK", "", "fine");
    }
  }};
  ASSERT_TRUE(call(get(server.url())));
  auto answer = call(post(server.url(), "go"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::closed);
  EXPECT_EQ(posts, 1);
  // A server that isn't there had nothing.
  answer = call(post("http://127.0.0.1:1/x?token=secret", "go"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::unavailable);
  EXPECT_EQ(answer.error().message.find("secret"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find("127.0.0.1:1/x"), std::string::npos)
      << answer.error().message;
}

TEST_F(http_host_test, a_slow_answer_ends_at_the_deadline) {
  web_server server{[](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    peer.wait_for_end();
  }};
  auto answer = call(get(server.url()), 200ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::timeout);
}

TEST_F(http_host_test, an_answer_that_is_cut_off_is_an_error) {
  web_server server{[](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nab");
  }};
  auto answer = call(get(server.url()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::closed);
  web_server nonsense{[](web_connection& peer) {
    peer.read();
    peer.write("SSH-2.0-OpenSSH\r\n\r\n");
  }};
  answer = call(get(nonsense.url()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::malformed) << answer.error().message;
}

TEST_F(http_host_test, floods_of_headers_are_refused) {
  web_server many{[](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\n");
    while (peer.write("X: y\r\n")) {
    }
  }};
  auto answer = call(get(many.url()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::too_large);
  web_server informing{[](web_connection& peer) {
    peer.read();
    while (peer.write("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n")) {
    }
  }};
  answer = call(get(informing.url()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::too_large);
}

TEST_F(http_host_test, a_redirect_is_followed_with_all_on_the_same_origin) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.head.starts_with("POST /old")
          ? peer.answer("307 Temporary Redirect", "Location: new?x=1\r\n", "moved")
          : peer.answer("200 OK", "",
                        peer.head.substr(0, peer.head.find("\r\n")) + "|" +
                            peer.header("authorization") + "|" + peer.body);
    }
  }};
  auto request = post(server.url("/old"), "body");
  auto answer = call(request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 307U); // unless they are asked for, they are answers
  request.redirects = 2;
  answer = call(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "POST /new?x=1 HTTP/1.1|Bearer secret-1|body");
}

TEST_F(http_host_test, a_redirect_to_another_origin_carries_no_secret) {
  web_server other{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("200 OK", "", peer.head);
    }
  }};
  std::string status = "302 Found";
  web_server server{[&](web_connection& peer) {
    while (peer.read()) {
      peer.answer(status, "Location: " + other.url("/there") + "\r\n", "");
    }
  }};
  auto request = get(server.url());
  request.redirects = 1;
  request.headers = {{"Authorization", "Bearer secret-1"},
                     {"X-Api-Key", "secret-2"},
                     {"Cookie", "secret-3"},
                     {"Accept", "application/json"}};
  auto answer = call(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body.starts_with("GET /there"));
  EXPECT_EQ(answer->body.find("secret"), std::string::npos) << answer->body;
  EXPECT_NE(answer->body.find("Accept: application/json"), std::string::npos) << answer->body;
  status = "307 Temporary Redirect";
  auto posted = post(server.url(), "body");
  posted.redirects = 1;
  answer = call(posted);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::denied);
}

TEST_F(http_host_test, redirects_end) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("302 Found", "Location: /again\r\n", "");
    }
  }};
  auto request = get(server.url());
  request.redirects = 3;
  auto answer = call(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 302U);
}

TEST_F(http_host_test, public_requests_reach_no_private_address_by_any_name) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("200 OK", "", "secrets");
    }
  }};
  ASSERT_TRUE(call(get(server.named_url("localhost", "/")))); // its connection is kept
  for (const auto* name : {"localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]",
                           "[::ffff:127.0.0.1]", "0.0.0.0", "metadata.google.internal"}) {
    auto request = get(server.named_url(name, "/"));
    request.public_only = true;
    auto answer = call(request);
    ASSERT_FALSE(answer) << name;
    EXPECT_EQ(answer.error().code, errc::denied) << name << ": " << answer.error().message;
  }
  EXPECT_EQ(server.accepted(), 1U);
}

TEST_F(http_host_test, public_requests_by_a_proxy_are_encrypted) {
  web_server proxy{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("403 Forbidden", "", "");
    }
  }};
  variables["http_proxy"] = variables["https_proxy"] = proxy.url();
  auto request = get("http://example.com/");
  request.public_only = true;
  auto answer = call(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::denied) << answer.error().message;
  EXPECT_EQ(proxy.accepted(), 0U);
  request.url = "https://10.0.0.1/";
  answer = call(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::denied) << answer.error().message;
  EXPECT_EQ(proxy.accepted(), 0U);
  request.url = "https://example.com/";
  answer = call(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::unavailable) << answer.error().message;
  EXPECT_EQ(proxy.accepted(), 1U);
}

TEST_F(http_host_test, requests_that_would_forge_headers_are_refused) {
  auto request = get("http://127.0.0.1:1/");
  request.headers = {{"X-Thing", "a\r\nX-Other: b"}};
  auto answer = call(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::invalid_argument);
  request.headers = {{"X Thing", "a"}};
  EXPECT_EQ(call(request).error().code, errc::invalid_argument);
  for (const auto* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "http://user:secret@127.0.0.1/",
                          "gopher://127.0.0.1/", "/etc/passwd"}) {
    auto refused = call(get(url));
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().code, errc::invalid_argument) << url;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  }
}

TEST_F(http_host_test, a_streamed_answer_comes_as_credit_allows) {
  std::atomic<std::size_t> written{0};
  std::atomic<bool> done{false};
  web_server server{[&](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::string piece(16 * kibibyte, 'x');
    for (int i = 0; i < 2048; ++i) { // 32 MiB
      if (!peer.chunk(piece)) {
        return;
      }
      written += piece.size();
    }
    peer.write("0\r\nX-Trailer: y\r\n\r\n");
    done = true;
  }};
  open(get(server.url()));
  ASSERT_TRUE(heard->wait([](const story& now) { return now.body.size() >= http_credit; }));
  EXPECT_EQ(heard->get().head->status, 200U);
  // The rest is with the server and in the kernel's buffers, which are smaller than the answer.
  EXPECT_TRUE(eventually([&, last = std::size_t{0}]() mutable {
    std::this_thread::sleep_for(50ms);
    return std::exchange(last, written.load()) == written;
  }));
  EXPECT_FALSE(done);
  EXPECT_LT(heard->get().body.size(), http_credit + 64 * kibibyte);
  std::size_t given = 0;
  while (!heard->get().end) {
    auto have = heard->get().body.size();
    if (have > given) {
      caf::anon_send(host, credit_atom::value, exchange_id{1}, std::uint64_t{have - given});
      given = have;
    }
    heard->wait([&](const story& now) { return now.body.size() > given || now.end; });
  }
  auto end = heard->get();
  EXPECT_EQ(end.end->code, errc::none) << end.end->message;
  EXPECT_EQ(end.body.size(), 2048 * 16 * kibibyte);
  EXPECT_FALSE(end.after_end);
}

TEST_F(http_host_test, a_cancelled_exchange_is_dropped_without_a_word) {
  std::atomic<bool> ended{false};
  web_server server{[&](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n");
    peer.wait_for_end();
    ended = true;
  }};
  open(get(server.url()));
  ASSERT_TRUE(heard->wait([](const story& now) { return !now.body.empty(); }));
  caf::anon_send(host, cancel_atom::value, exchange_id{1});
  EXPECT_TRUE(eventually([&] { return ended.load(); }));
  EXPECT_FALSE(heard->get().end);
}

TEST_F(http_host_test, an_exchange_ends_with_its_owner) {
  std::atomic<bool> ended{false};
  web_server server{[&](web_connection& peer) {
    peer.read();
    peer.write("HTTP/1.1 200 OK\r\n\r\n");
    peer.wait_for_end();
    ended = true;
  }};
  open(get(server.url()));
  ASSERT_TRUE(heard->wait([](const story& now) { return now.head.has_value(); }));
  caf::anon_send_exit(owner, caf::exit_reason::user_shutdown);
  EXPECT_TRUE(eventually([&] { return ended.load(); }));
}

TEST_F(http_host_test, exchanges_that_are_dropped_while_a_name_is_looked_up_keep_nobody_waiting) {
  web_server server{[](web_connection& peer) {
    while (peer.read()) {
      peer.answer("200 OK", "", "fine");
    }
  }};
  open(get("http://no-such-host.invalid/"));
  caf::anon_send(host, cancel_atom::value, exchange_id{1});
  EXPECT_TRUE(call(get(server.url())));
  auto answer = call(get("http://no-such-host.invalid/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::unavailable) << answer.error().message;
}

} // namespace
} // namespace bulkhead
