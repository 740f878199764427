// Clients that mean harm: each gets an answer or is cut off, nothing of what they hide gets to the
// handler, and others are served meanwhile.

#include "tests/io/http_client_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

struct http_listener_hostile : listening {
  /// The one answer, with that status, after which the connection closes; a request that is hidden
  /// at the end of what is sent is never handed over.
  void expect_refusal(std::string_view sent, int status) {
    auto before = came.get().size();
    auto said = refusal_of(sent);
    EXPECT_TRUE(has_status(said, status)) << sent.substr(0, 500) << "\n" << said;
    EXPECT_EQ(answers_in(said), 1) << sent.substr(0, 500) << "\n" << said;
    EXPECT_EQ(came.get().size(), before) << sent.substr(0, 500);
  }

  /// Sends `piece` again and again until the listener closes; what it said before that.
  static std::string trickle(raw_client& client, std::string_view piece) {
    EXPECT_TRUE(eventually([&] {
      std::this_thread::sleep_for(10ms);
      return !client.send(piece);
    })) << "the connection stays open";
    return client.read_all();
  }

  const std::string smuggled = request_with("smuggled");
};

TEST_F(http_listener_hostile, a_header_that_trickles_is_given_up_and_others_are_served) {
  io::http_bounds bounds;
  bounds.header_time = 500ms;
  open(bounds);
  raw_client slow{listener->port()};
  slow.send("POST /mcp HTTP/1.1\r\nX: ");
  expect_service();
  auto said = trickle(slow, "x");
  EXPECT_TRUE(said.empty() || has_status(said, 408)) << said;
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener_hostile, a_body_that_trickles_is_given_up_whatever_it_announced) {
  io::http_bounds bounds;
  bounds.body_time = 500ms;
  open(bounds);
  raw_client slow{listener->port()};
  // At the rate that is asked of it, all of it might take minutes.
  slow.send(fmt::format("{}Content-Length: {}\r\n\r\n", head, bounds.body));
  expect_service();
  auto said = trickle(slow, "x");
  EXPECT_TRUE(said.empty() || has_status(said, 408)) << said;
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener_hostile, chunks_of_nothing_but_extensions_are_given_up) {
  io::http_bounds bounds;
  bounds.body_time = 500ms;
  open(bounds);
  raw_client slow{listener->port()};
  slow.send(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n1", head));
  auto said = trickle(slow, ";a=b");
  EXPECT_TRUE(said.empty() || has_status(said, 408) || has_status(said, 431)) << said;
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener_hostile, idle_connections_keep_nobody_out) {
  io::http_bounds bounds;
  bounds.connections = 10;
  bounds.dawdle_time = 0ms;
  open(bounds);
  std::vector<std::unique_ptr<raw_client>> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(std::make_unique<raw_client>(listener->port()));
    if (i % 2 == 1) {
      idle.back()->send("POST /mcp HTTP/1.1\r\n");
    }
  }
  expect_service();
  // Whoever waited for longest went first.
  idle.front()->read_all();
  EXPECT_TRUE(idle.front()->closed());
}

TEST_F(http_listener_hostile, extensions_of_chunks_and_trailers_are_bounded) {
  open();
  const std::string big(20'000, 'x');
  auto start = fmt::format("{}Transfer-Encoding: chunked\r\n\r\n", head);
  expect_refusal(fmt::format("{}2;{}", start, big), 431);
  expect_refusal(fmt::format("{}2\r\n{{}}\r\n0;{}", start, big), 431);
  expect_refusal(fmt::format("{}2\r\n{{}}\r\n0\r\nX: {}", start, big), 431);
  expect_refusal(fmt::format("{}{}", start, big), 431);
}

TEST_F(http_listener_hostile, trailers_are_no_fields) {
  open();
  raw_client client{listener->port()};
  client.send(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nAuthorization: "
                          "Bearer x\r\nHost: evil.example\r\n\r\n",
                          head));
  auto one = request(0);
  EXPECT_EQ(one.request.count("authorization"), 0);
  EXPECT_EQ(one.request.count("host"), 1);
}

TEST_F(http_listener_hostile, a_trailer_changes_no_length) {
  open();
  auto start = fmt::format("{}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n", head);
  expect_refusal(start + "Content-Length: 5\r\n\r\n" + smuggled, 400);
  expect_refusal(start + "Transfer-Encoding: chunked\r\n\r\n" + smuggled, 400);
}

TEST_F(http_listener_hostile, requests_with_two_readings_are_refused) {
  open();
  for (std::string_view fields : {
           "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
           "Content-Length: 0\r\nContent-Length: 0\r\n",
           "Content-Length: 0\r\nContent-Length: 5\r\n",
           "Content-Length: 0, 0\r\n",
           "Content-Length: +0\r\n",
           "Content-Length: 0x0\r\n",
           "Content-Length:\r\n",
           "Content-Length : 0\r\n",
           " Content-Length: 0\r\n",
           "Content-Length: 0\r\n Transfer-Encoding: chunked\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding: chunked, identity\r\n",
           "Transfer-Encoding: identity, chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
           "Transfer-Encoding:\x0b"
           "chunked\r\n",
           "Transfer-Encoding:\r\n chunked\r\n",
           "Transfer-Encoding\x80: chunked\r\n",
           "X: y\nTransfer-Encoding: chunked\r\n",
           "X: y\rTransfer-Encoding: chunked\r\n",
           "\r \n",
       }) {
    expect_refusal(fmt::format("{}{}\r\n0\r\n\r\n{}", head, fields, smuggled), 400);
  }
  std::string with_nul = fmt::format("{}X-A", head) + '\0' + ": b\r\n\r\n" + smuggled;
  expect_refusal(with_nul, 400);
  expect_refusal(std::string{head} + "X-A: b" + '\0' + "\r\n\r\n" + smuggled, 400);
}

TEST_F(http_listener_hostile, chunks_with_two_readings_are_refused) {
  open();
  for (std::string_view chunks : {
           "2\n{}\n0\n\n",
           "2\r\n{}0\r\n\r\n",
           "2 \r\n{}\r\n0\r\n\r\n",
           " 2\r\n{}\r\n0\r\n\r\n",
           "+2\r\n{}\r\n0\r\n\r\n",
           "0x2\r\n{}\r\n0\r\n\r\n",
           "2\r\n{}x\r\n0\r\n\r\n",
           "10000000000000002\r\n{}\r\n0\r\n\r\n",
           "\r\n2\r\n{}\r\n0\r\n\r\n",
           "2;\x01\r\n{}\r\n0\r\n\r\n",
           "2;a\n=b\r\n{}\r\n0\r\n\r\n",
       }) {
    expect_refusal(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n{}{}", head, chunks, smuggled),
                   400);
  }
}

TEST_F(http_listener_hostile, lines_that_end_otherwise_are_refused_at_once) {
  open();
  auto only_lf = request_with("{}");
  std::erase(only_lf, '\r');
  expect_refusal(only_lf, 400);
  expect_refusal("GET /mcp HTTP/1.1\n", 400);
}

TEST_F(http_listener_hostile, a_refused_request_takes_those_behind_it_along) {
  open();
  expect_refusal("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" + smuggled, 404);
  expect_refusal(fmt::format("{}Host: localhost\r\nContent-Length: 0\r\n\r\n{}", head, smuggled),
                 400);
}

TEST_F(http_listener_hostile, many_pipelined_requests_are_taken_one_by_one) {
  open();
  constexpr std::size_t count = 2'000;
  raw_client client{listener->port()};
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += request_with(std::to_string(i));
  }
  std::thread sender{[&] { client.send(all); }};
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(came.wait([&](const auto& so_far) { return so_far.size() > 0; }));
    came.change([&](auto& so_far) {
      ASSERT_EQ(so_far.size(), 1);
      EXPECT_EQ(so_far[0].request.body, std::to_string(i));
      so_far[0].reply->answer(answer_with(fmt::format("<{}>", i)));
      so_far.clear();
    });
  }
  sender.join();
  EXPECT_EQ(answers_in(client.read_until(fmt::format("<{}>", count - 1))), count);
}

TEST_F(http_listener_hostile, other_forms_of_a_target_lead_nowhere) {
  open();
  for (std::string_view target : {"http://localhost/mcp", "http://evil.example/mcp", "*",
                                  "localhost:80", "//localhost/mcp", "/mcp/../mcp", "/mcp#x"}) {
    expect_refusal(fmt::format("POST {} {}{}", target,
                               head.substr(std::string_view{"POST /mcp "}.size()), "\r\n"),
                   404);
  }
  expect_refusal("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404);
}

TEST_F(http_listener_hostile, other_versions_are_refused_and_the_first_is_served) {
  open();
  expect_refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
  expect_refusal("GET /mcp HTTP/1.2\r\nHost: localhost\r\n\r\n", 505);
  expect_refusal("GET /mcp\r\n\r\n", 400);
  auto old = fmt::format("POST /mcp HTTP/1.0{}", head.substr(head.find("\r\n")));
  auto refused = refusal_of(old + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled);
  EXPECT_TRUE(refused.starts_with("HTTP/1.0 400 ")) << refused;
  EXPECT_EQ(answers_in(refused), 1) << refused;
  raw_client client{listener->port()};
  client.send(old + "Content-Length: 2\r\n\r\n{}" + smuggled);
  request(0).reply->answer(answer_with("once"));
  auto said = client.read_all();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(said.ends_with("once")) << said;
  EXPECT_EQ(answers_in(said), 1) << said;
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener_hostile, only_one_thing_can_be_expected) {
  open();
  expect_refusal(fmt::format("{}Expect: tea\r\nContent-Length: 2\r\n\r\n{{}}", head), 417);
}

TEST_F(http_listener_hostile, empty_lines_before_a_request_are_nothing) {
  open();
  raw_client client{listener->port()};
  client.send("\r\n\r");
  client.send("\n" + request_with("{}"));
  EXPECT_EQ(request(0).request.body, "{}");
}

TEST_F(http_listener_hostile, clients_that_leave_early_leave_nothing) {
  open();
  for (std::string_view sent :
       {std::string_view{""}, std::string_view{"POST /mc"}, head, garbage,
        std::string_view{"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         "application/json\r\nAccept: */*\r\nContent-Length: 100\r\n\r\nhalf"}}) {
    raw_client client{listener->port()};
    client.send(sent);
    client.close();
  }
  expect_service();
  EXPECT_EQ(came.get().size(), 1);
}

TEST_F(http_listener_hostile, a_client_that_closes_its_side_is_gone) {
  open();
  raw_client in_head{listener->port()};
  in_head.send("POST /mcp HTTP/1.1\r\n");
  in_head.close_writing();
  EXPECT_EQ(in_head.read_all(), "");
  EXPECT_TRUE(in_head.closed());
  raw_client waits{listener->port()};
  waits.send(request_with("{}"));
  monitored<bool> gone;
  request(0).reply->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  waits.close_writing();
  EXPECT_TRUE(gone.wait([](bool done) { return done; }));
  EXPECT_EQ(waits.read_all(), "");
  EXPECT_TRUE(waits.closed());
}

TEST_F(http_listener_hostile, a_refused_client_that_never_stops_sending_is_cut) {
  io::http_bounds bounds;
  bounds.body = 100'000;
  open(bounds);
  raw_client client{listener->port()};
  client.send(garbage);
  const std::string more(50'000, 'x');
  EXPECT_TRUE(eventually([&] { return !client.send(more); }));
  expect_service();
}

} // namespace
} // namespace bulkhead
