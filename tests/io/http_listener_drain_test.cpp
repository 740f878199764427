#include "tests/io/http_client_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

/// How a listener closes.
struct http_listener_drain : listening {
  void drain(std::chrono::milliseconds grace) {
    listener->close(grace, [this] { empty.change([](bool& done) { done = true; }); });
  }

  bool ended() const {
    return empty.wait([](bool done) { return done; });
  }

  mutable monitored<bool> empty;
};

TEST_F(http_listener_drain, answers_under_way_get_out) {
  open();
  raw_client idle{listener->port()};
  raw_client busy{listener->port()};
  busy.send(request_with("{}"));
  request(0);
  drain(patience);
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(empty.get());
  request(0).reply->answer(answer_with("the last word"));
  auto answer = busy.read_all();
  EXPECT_NE(answer.find("the last word"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  busy.close();
  EXPECT_TRUE(ended());
  EXPECT_THROW(raw_client{listener->port()}, std::runtime_error);
}

TEST_F(http_listener_drain, streams_go_on_to_their_end) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  auto one = request(0);
  one.reply->begin({200, {}, {}});
  one.reply->write("data: 1\n\n");
  client.read_until("data: 1");
  drain(patience);
  one.reply->write("data: 2\n\n");
  client.read_until("data: 2");
  EXPECT_FALSE(one.reply->gone());
  one.reply->end();
  EXPECT_TRUE(client.read_all().ends_with("\r\n0\r\n\r\n")) << client.read_all();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(ended());
}

TEST_F(http_listener_drain, what_is_left_at_the_end_of_the_grace_is_cut) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  monitored<bool> gone;
  request(0).reply->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  drain(100ms);
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(gone.wait([](bool done) { return done; }));
  EXPECT_TRUE(ended());
}

TEST_F(http_listener_drain, asked_again_the_sooner_end_counts) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  request(0);
  drain(std::chrono::hours{1});
  drain(0ms);
  EXPECT_TRUE(ended());
  client.read_all();
  EXPECT_TRUE(client.closed());
}

TEST_F(http_listener_drain, a_request_that_comes_too_late_on_a_kept_connection_is_refused) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("first"));
  request(0).reply->answer(answer_with("ok"));
  client.read_until("ok");
  client.take();
  // The listener learns of its end first, and of the request then.
  std::promise<void> held;
  boost::asio::post(io.context(), [&held] { held.get_future().wait(); });
  drain(patience);
  client.send(request_with("second"));
  held.set_value();
  auto answer = client.read_all();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_NE(answer.find("stopping"), std::string::npos) << answer;
  EXPECT_EQ(came.get().size(), 1);
  client.close();
  EXPECT_TRUE(ended());
}

TEST_F(http_listener_drain, requests_that_are_coming_are_refused) {
  open();
  raw_client in_body{listener->port()};
  in_body.send(fmt::format("{}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", head));
  in_body.read_until("\r\n\r\n");
  in_body.take();
  raw_client in_head{listener->port()};
  in_head.send("POST /mcp HTTP/1.1\r\nHost: loc");
  // It has been accepted, since others are served after it.
  expect_service();
  drain(patience);
  for (auto* client : {&in_body, &in_head}) {
    auto answer = client->read_all();
    EXPECT_TRUE(client->closed());
    EXPECT_TRUE(has_status(answer, 503)) << answer;
    EXPECT_EQ(answers_in(answer), 1) << answer;
  }
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener_drain, a_pipelined_request_is_not_begun) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("first") + request_with("second"));
  auto one = request(0);
  drain(patience);
  one.reply->answer(answer_with("ok"));
  auto answer = client.read_all();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(has_status(answer, 200)) << answer;
  EXPECT_EQ(answers_in(answer), 1) << answer;
  client.close();
  EXPECT_TRUE(ended());
  EXPECT_EQ(came.get().size(), 1);
}

} // namespace
} // namespace bulkhead
