#include <future>

#include "tests/io/http_client_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

using http_listener = listening;

TEST_F(http_listener, a_request_comes_whole_and_its_answer_goes_out_whole) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{\"a\":1}", "X-More:   padded  \r\n"));
  auto one = request(0);
  EXPECT_EQ(one.request.method, "POST");
  EXPECT_EQ(one.request.target, "/mcp");
  EXPECT_EQ(one.request.body, "{\"a\":1}");
  EXPECT_EQ(one.request.principal, "local");
  ASSERT_NE(one.request.find("x-more"), nullptr);
  EXPECT_EQ(*one.request.find("x-more"), "padded");
  EXPECT_EQ(held_bytes, 7);
  one.reply->answer(answer_with("{\"b\":2}"));
  auto answer = client.read_until("{\"b\":2}");
  EXPECT_TRUE(has_status(answer, 200)) << answer;
  EXPECT_NE(answer.find("Content-Length: 7\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos) << answer;
}

TEST_F(http_listener, a_connection_serves_one_request_after_the_other) {
  open();
  raw_client client{listener->port()};
  for (std::size_t i = 0; i < 3; ++i) {
    client.send(request_with(std::to_string(i)));
    EXPECT_EQ(request(i).request.body, std::to_string(i));
    request(i).reply->answer(answer_with(fmt::format("<{}>", i)));
    client.read_until(fmt::format("<{}>", i));
  }
}

TEST_F(http_listener, pipelined_requests_are_answered_in_order) {
  open();
  raw_client client{listener->port()};
  std::string all;
  for (int i = 0; i < 5; ++i) {
    all += request_with(std::to_string(i));
  }
  client.send(all);
  for (std::size_t i = 0; i < 5; ++i) {
    auto one = request(i);
    EXPECT_EQ(one.request.body, std::to_string(i));
    // No other comes before this one is answered.
    EXPECT_EQ(came.get().size(), i + 1);
    one.reply->answer(answer_with(fmt::format("<{}>", i)));
    client.read_until(fmt::format("<{}>", i));
  }
}

TEST_F(http_listener, a_stream_goes_out_in_chunks_as_it_is_written) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  auto one = request(0);
  one.reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  one.reply->write("data: 1\n\n");
  EXPECT_NE(client.read_until("data: 1\n\n").find("Transfer-Encoding: chunked"), std::string::npos);
  one.reply->write("data: 2\n\n");
  client.read_until("9\r\ndata: 2\n\n");
  one.reply->end();
  client.read_until("0\r\n\r\n");
  // What is said after the end is dropped, and the connection goes on.
  one.reply->write("data: 3\n\n");
  client.send(request_with("next"));
  request(1).reply->answer(answer_with("done"));
  EXPECT_EQ(client.read_until("done").find("data: 3"), std::string::npos);
}

TEST_F(http_listener, what_is_written_while_the_head_is_on_its_way_is_no_arrear) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  auto one = request(0);
  std::promise<void> head_is_out;
  std::promise<void> go_on;
  one.reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  boost::asio::post(io.context(), [&] {
    head_is_out.set_value();
    go_on.get_future().wait();
  });
  head_is_out.get_future().wait();
  // The connection hasn't heard yet that the head is out.
  one.reply->write("data: 1\n\n");
  go_on.set_value();
  client.read_until("data: 1\n\n");
  one.reply->write("data: 2\n\n");
  client.read_until("data: 2\n\n");
  EXPECT_TRUE(eventually([&] { return one.reply->unsent() == 0; }));
  EXPECT_FALSE(one.reply->gone());
}

TEST_F(http_listener, an_old_client_gets_a_stream_without_chunks_until_the_end) {
  open();
  raw_client client{listener->port()};
  client.send("POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: "
              "*/*\r\nContent-Length: 2\r\n\r\n{}");
  auto one = request(0);
  one.reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  one.reply->write("data: 1\n\n");
  one.reply->end();
  auto answer = client.read_all();
  EXPECT_TRUE(answer.ends_with("\r\n\r\ndata: 1\n\n")) << answer;
  EXPECT_EQ(answer.find("chunked"), std::string::npos) << answer;
}

TEST_F(http_listener, a_client_that_goes_away_is_noticed_before_and_within_its_answer) {
  open();
  monitored<int> gone;
  auto tell = [&gone] { gone.change([](int& count) { ++count; }); };
  raw_client first{listener->port()};
  first.send(request_with("{}"));
  request(0).reply->when_gone(tell);
  first.close();
  EXPECT_TRUE(gone.wait([](int count) { return count == 1; }));
  EXPECT_TRUE(request(0).reply->gone());

  raw_client second{listener->port()};
  second.send(request_with("{}"));
  request(1).reply->begin({200, {}, {}});
  request(1).reply->when_gone(tell);
  second.read_until("\r\n\r\n");
  second.close();
  EXPECT_TRUE(gone.wait([](int count) { return count == 2; }));
  // Asked afterwards it is told, too.
  request(1).reply->when_gone(tell);
  EXPECT_TRUE(gone.wait([](int count) { return count == 3; }));
}

TEST_F(http_listener, a_reply_that_nobody_holds_any_more_is_an_error_of_the_servers) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  request(0);
  came.change([](auto& all) { all.clear(); });
  EXPECT_TRUE(has_status(client.read_until("fault"), 500)) << client.read_until("fault");
}

TEST_F(http_listener, a_stream_that_nobody_holds_any_more_breaks_off) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  request(0).reply->begin({200, {}, {}});
  client.read_until("\r\n\r\n");
  came.change([](auto& all) { all.clear(); });
  EXPECT_FALSE(client.read_all().ends_with("0\r\n\r\n"));
  EXPECT_TRUE(client.closed());
}

TEST_F(http_listener, what_breaks_the_rules_never_gets_to_the_handler) {
  open();
  auto refused = [&](std::string_view sent, int status) {
    auto answer = refusal_of(sent);
    EXPECT_TRUE(has_status(answer, status)) << sent << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  };
  refused("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404);
  refused("GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403);
  refused("GET /mcp HTTP/1.1\r\n\r\n", 400);
  refused("PUT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405);
  refused(fmt::format("{}Origin: http://evil.example\r\nContent-Length: 2\r\n\r\n{{}}", head), 403);
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener, malformed_requests_are_bad_requests) {
  open();
  for (std::string_view sent : {
           "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 TLS",
           "GET /mcp\r\n\r\n",
           "GET  /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: "
           "2\r\n\r\nab",
           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nno colon here\r\n\r\n",
           "POST /mcp HTTP/1.1\r\nHost: local\x01host\r\n\r\n",
       }) {
    auto answer = refusal_of(sent);
    EXPECT_TRUE(has_status(answer, 400)) << sent << "\n" << answer;
  }
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener, a_body_has_one_length) {
  open();
  // Two lengths are how one request is smuggled within another.
  auto answer = refusal_of(
      fmt::format("{}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", head));
  EXPECT_TRUE(has_status(answer, 400)) << answer;
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener, chunked_bodies_are_put_together_and_odd_ones_refused) {
  open();
  raw_client client{listener->port()};
  client.send(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n3;ext=\"x\"\r\n{{\"a\r\n", head));
  client.send("004\r\n\":1}\r\n0\r\nX-Trailer: t\r\n\r\n");
  EXPECT_EQ(request(0).request.body, "{\"a\":1}");
  EXPECT_EQ(held_bytes, 7);
  request(0).reply->answer(answer_with("ok"));
  client.read_until("ok");
  for (std::string_view body : {"x\r\n", "-1\r\nab\r\n", "2\r\nabc\r\n0\r\n\r\n",
                                "fffffffffffffffff\r\n", "0x2\r\nab\r\n0\r\n\r\n"}) {
    auto answer = refusal_of(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n{}", head, body));
    EXPECT_TRUE(has_status(answer, 400)) << body << "\n" << answer;
  }
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener, who_expects_to_be_told_to_go_on_is_told) {
  open();
  raw_client client{listener->port()};
  client.send(fmt::format("{}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", head));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 100 "));
  client.send("{}");
  EXPECT_EQ(request(0).request.body, "{}");
}

TEST_F(http_listener, a_token_is_asked_for_before_the_body_is_read) {
  http_rules rules;
  rules.authenticate = [](std::string_view token) -> tl::expected<std::string, outgoing_answer> {
    if (token == "sesame") {
      return "ali";
    }
    return tl::unexpected{refusal(401, -32600, "the token isn't valid")};
  };
  open({}, rules);
  auto answer = refusal_of(fmt::format("{}Content-Length: 1000000\r\n\r\n", head));
  EXPECT_TRUE(has_status(answer, 401)) << answer;
  raw_client client{listener->port()};
  client.send(request_with("{}", "Authorization: Bearer sesame\r\n"));
  EXPECT_EQ(request(0).request.principal, "ali");
}

http_rules with_pages() {
  http_rules rules;
  rules.pages = {{"/metrics"}, {"/ui/", {"GET", "POST"}}};
  return rules;
}

TEST_F(http_listener, pages_get_to_the_handler_with_their_target) {
  open({}, with_pages());
  raw_client client{listener->port()};
  client.send("GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto one = request(0);
  EXPECT_EQ(one.request.method, "GET");
  EXPECT_EQ(one.request.target, "/metrics?x=1");
  one.reply->answer({200, {{"Content-Type", "text/plain"}}, "runs 1\n"});
  client.read_until("runs 1\n");
  client.send("POST /ui/cancel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(request(1).request.target, "/ui/cancel");
  EXPECT_EQ(request(1).request.body, "{}");
}

TEST_F(http_listener, a_head_is_a_get_without_the_body) {
  open({}, with_pages());
  raw_client client{listener->port()};
  constexpr std::string_view asked = "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(asked);
  EXPECT_EQ(request(0).request.method, "GET");
  request(0).reply->answer({200, {}, "the body"});
  EXPECT_NE(client.read_until("\r\n\r\n").find("Content-Length: 8\r\n"), std::string::npos);
  // The next answer begins right after it.
  EXPECT_TRUE(client.take().ends_with("\r\n\r\n"));
  client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  request(1).reply->answer({200, {}, "another body"});
  EXPECT_TRUE(has_status(client.read_until("another body"), 200)) << client.read_until("");
  EXPECT_EQ(client.take().find("the body"), std::string::npos);
  // Of a stream there is nothing to be sent but its head; whoever writes it learns that.
  client.send(asked);
  auto stream = request(2).reply;
  monitored<bool> gone;
  stream->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  stream->begin({200, {}, {}});
  stream->write("data: 1\n\n");
  EXPECT_TRUE(gone.wait([](bool done) { return done; }));
  EXPECT_TRUE(stream->gone());
  stream->end();
  client.read_until("\r\n\r\n");
  client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  request(3).reply->answer({200, {}, "the last body"});
  EXPECT_EQ(client.read_until("the last body").find("data:"), std::string::npos);
  // A refusal has no body, either.
  auto answer = refusal_of("HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(has_status(answer, 404)) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(http_listener, what_cannot_be_listened_on_is_told) {
  open();
  io::http_listener_options options;
  options.budget = budget;
  options.port = listener->port();
  auto taken = io::http_listener::open(io, options, {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, errc::unavailable);
  options.address = "localhost";
  auto name = io::http_listener::open(io, options, {});
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, errc::invalid_argument);
}

} // namespace
} // namespace bulkhead
