#include "actors/io/listening_socket.hpp"
#include "tests/io/http_client_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

using http_listener_bounds = listening;

TEST_F(http_listener_bounds, a_body_over_the_limit_is_refused_before_it_is_read) {
  io::http_bounds bounds;
  bounds.body = 100'000;
  open(bounds);
  auto answer = refusal_of(fmt::format("{}Content-Length: 100001\r\n\r\n", head));
  EXPECT_TRUE(has_status(answer, 413)) << answer;
  // A client that sends it all the same gets to read why.
  answer = refusal_of(request_with(std::string(150'000, 'x')));
  EXPECT_TRUE(has_status(answer, 413)) << answer;
  std::string chunked{head};
  chunked += "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    chunked += fmt::format("{:x}\r\n{}\r\n", 40'000, std::string(40'000, 'x'));
  }
  answer = refusal_of(chunked + "0\r\n\r\n");
  EXPECT_TRUE(has_status(answer, 413)) << answer;
  raw_client client{listener->port()};
  client.send(request_with(std::string(100'000, 'x')));
  EXPECT_EQ(request(0).request.body.size(), 100'000);
}

TEST_F(http_listener_bounds, a_body_that_nothing_is_done_with_is_refused_before_it_is_read) {
  open();
  for (const char* length : {"Content-Length: 4000000", "Transfer-Encoding: chunked"}) {
    auto answer = refusal_of(fmt::format("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: "
                                         "text/event-stream\r\n{}\r\n\r\na\r\n0123456789",
                                         length));
    EXPECT_TRUE(has_status(answer, 413)) << length << answer;
  }
}

TEST_F(http_listener_bounds, headers_are_bounded_in_size_and_number) {
  open();
  auto answer = refusal_of(fmt::format("{}X-Big: {}\r\n\r\n", head, std::string(20'000, 'x')));
  EXPECT_TRUE(has_status(answer, 431)) << answer;
  std::string many{head};
  for (int i = 0; i < 101; ++i) {
    many += fmt::format("X-{}: {}\r\n", i, i);
  }
  answer = refusal_of(many + "\r\n");
  EXPECT_TRUE(has_status(answer, 431)) << answer;
  answer = refusal_of(fmt::format("GET /{} HTTP/1.1\r\n", std::string(20'000, 'x')));
  EXPECT_TRUE(has_status(answer, 414)) << answer;
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener_bounds, bodies_are_charged_as_they_come_and_refused_when_there_is_no_room) {
  open();
  memory_budget::share others;
  ASSERT_TRUE(budget->take(8 * mebibyte - 100'000, others));
  auto answer = refusal_of(request_with(std::string(1'000'000, 'x')));
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  EXPECT_NE(answer.find("try again later"), std::string::npos) << answer;
  EXPECT_EQ(others.bytes(), budget->used());
  others.release();
  raw_client client{listener->port()};
  client.send(request_with(std::string(1'000'000, 'x')));
  EXPECT_EQ(request(0).request.body.size(), 1'000'000);
}

http_rules with_two_holders() {
  http_rules rules;
  rules.authenticate = [](std::string_view token) -> tl::expected<std::string, outgoing_answer> {
    if (token == "of-ann" || token == "of-bob") {
      return std::string{token.substr(3)};
    }
    return tl::unexpected{refusal(401, -32600, "the token isn't valid")};
  };
  return rules;
}

std::string of(std::string_view name, std::string_view body = "{}") {
  return request_with(body, fmt::format("Authorization: Bearer of-{}\r\n", name));
}

TEST_F(http_listener_bounds, one_principal_keeps_only_so_many_connections_busy) {
  io::http_bounds bounds;
  bounds.connections_per_principal = 2;
  open(bounds, with_two_holders());
  raw_client coming{listener->port()};
  coming.send(fmt::format("{}Authorization: Bearer of-bob\r\nContent-Length: 9\r\n\r\n{{", head));
  raw_client streaming{listener->port()};
  streaming.send(of("bob"));
  request(0).reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  streaming.read_until("event-stream");
  auto answer = refusal_of(of("bob"));
  EXPECT_TRUE(has_status(answer, 429)) << answer;
  EXPECT_NE(answer.find("Retry-After: 1"), std::string::npos) << answer;
  raw_client other{listener->port()};
  other.send(of("ann"));
  EXPECT_EQ(request(1).request.principal, "ann");
  request(1).reply->answer(answer_with("hers"));
  EXPECT_TRUE(has_status(other.read_until("hers"), 200));
  // What is over counts no more, whether its connection is kept or not.
  request(0).reply->end();
  streaming.read_until("0\r\n\r\n");
  raw_client next{listener->port()};
  next.send(of("bob"));
  EXPECT_EQ(request(2).request.principal, "bob");
  coming.close();
  std::vector<std::unique_ptr<raw_client>> again;
  EXPECT_TRUE(eventually([&] {
    again.push_back(std::make_unique<raw_client>(listener->port()));
    again.back()->send(of("bob"));
    return came.get().size() > 3;
  }));
  EXPECT_EQ(request(3).request.principal, "bob");
}

TEST_F(http_listener_bounds, principals_together_leave_connections_for_another) {
  io::http_bounds bounds;
  bounds.connections = 6;
  bounds.connections_per_principal = 3;
  http_rules rules;
  rules.authenticate = [](std::string_view token) -> tl::expected<std::string, outgoing_answer> {
    return std::string{token.substr(3)};
  };
  open(bounds, rules);
  std::vector<std::unique_ptr<raw_client>> busy;
  for (const auto* name : {"bob", "bob", "bob", "ann", "ann"}) {
    busy.push_back(std::make_unique<raw_client>(listener->port()));
    busy.back()->send(of(name));
    request(busy.size() - 1);
  }
  auto answer = refusal_of(of("ann"));
  EXPECT_TRUE(has_status(answer, 429)) << answer;
  raw_client other{listener->port()};
  other.send(of("cleo"));
  EXPECT_EQ(request(5).request.principal, "cleo");
}

TEST_F(http_listener_bounds, streams_end_when_their_token_is_valid_no_more) {
  std::atomic<bool> valid = true;
  http_rules rules = with_two_holders();
  rules.authenticate = [&valid, all = rules.authenticate](std::string_view token) {
    return valid || token == "of-ann" ? all(token) : all("");
  };
  open({}, rules);
  raw_client his{listener->port()};
  his.send(of("bob"));
  request(0).reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  monitored<bool> gone;
  request(0).reply->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  raw_client hers{listener->port()};
  hers.send(of("ann"));
  request(1).reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  hers.read_until("event-stream");
  his.read_until("event-stream");
  listener->tokens_changed();
  valid = false;
  listener->tokens_changed();
  auto rest = his.read_all();
  EXPECT_TRUE(his.closed());
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n")) << rest << "a stream that ends in order";
  EXPECT_TRUE(gone.wait([](bool done) { return done; })) << "whoever writes it is told";
  request(1).reply->write("still here");
  hers.read_until("still here");
}

TEST_F(http_listener_bounds, a_token_that_expires_ends_its_streams_without_being_asked) {
  std::atomic<bool> valid = true;
  io::http_bounds bounds;
  bounds.token_time = 20ms;
  http_rules rules;
  rules.authenticate = [&valid](std::string_view) -> tl::expected<std::string, outgoing_answer> {
    if (valid) {
      return "bob";
    }
    return tl::unexpected{refusal(401, -32600, "it has expired")};
  };
  open(bounds, rules);
  raw_client client{listener->port()};
  client.send(of("bob"));
  request(0).reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
  client.read_until("event-stream");
  valid = false;
  client.read_all();
  EXPECT_TRUE(client.closed());
}

TEST_F(http_listener_bounds, what_is_cut_short_for_its_token_does_not_look_whole) {
  std::atomic<bool> valid = true;
  io::http_bounds bounds;
  bounds.token_time = 20ms;
  http_rules rules = with_two_holders();
  rules.authenticate = [&valid, all = rules.authenticate](std::string_view token) {
    return all(valid ? token : "");
  };
  open(bounds, rules);
  raw_client client{listener->port()};
  client.send(of("bob"));
  request(0).reply->begin({200, {{"Content-Type", "application/octet-stream"}}, {}});
  request(0).reply->write("the first half");
  client.read_until("half\r\n");
  valid = false;
  auto rest = client.read_all();
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(rest.ends_with("0\r\n\r\n")) << rest;
}

TEST_F(http_listener_bounds, once_it_is_closed_nothing_holds_its_handler) {
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> seen = held;
  options.budget = budget;
  auto made = io::http_listener::open(
      io, options,
      [held = std::move(held)](incoming_request, memory_budget::share, io::http_reply_ptr reply) {
        reply->begin({200, {{"Content-Type", "text/event-stream"}}, {}});
      });
  ASSERT_TRUE(made) << made.error().message;
  raw_client client{(*made)->port()};
  client.send(request_with("{}"));
  client.read_until("\r\n\r\n");
  io::close_and_wait(**made, 0ms);
  EXPECT_TRUE(seen.expired());
}

TEST_F(http_listener_bounds, an_address_that_is_taken_is_told_with_who_to_ask) {
  open();
  auto again = options;
  again.port = listener->port();
  auto made = io::http_listener::open(
      io, again, [](incoming_request, memory_budget::share, io::http_reply_ptr) {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::unavailable);
  EXPECT_NE(made.error().message.find(fmt::format("ss -ltnp 'sport = :{}'", again.port)),
            std::string::npos)
      << made.error().message;
}

TEST_F(http_listener_bounds, a_principal_s_bodies_and_answers_are_charged_to_its_own_budget) {
  auto own = std::make_shared<memory_budget>(100'000, 0, budget);
  options.budget_of = [own](const std::string& name) { return name == "bob" ? own : nullptr; };
  open({}, with_two_holders());
  auto answer = refusal_of(of("bob", std::string(100'001, 'x')));
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  raw_client hers{listener->port()};
  hers.send(of("ann", std::string(100'001, 'x')));
  EXPECT_EQ(request(0).request.body.size(), 100'001);
  raw_client his{listener->port()};
  his.send(of("bob"));
  request(1).reply->answer(answer_with(std::string(100'001, 'y')));
  EXPECT_TRUE(has_status(his.read_until("try again later"), 503));
  request(0).reply->answer(answer_with(std::string(100'001, 'y') + "!"));
  EXPECT_TRUE(has_status(hers.read_until("!"), 200));
}

TEST_F(http_listener_bounds, the_reserve_is_not_for_bodies) {
  budget = std::make_shared<memory_budget>(2 * mebibyte, mebibyte);
  open();
  auto answer = refusal_of(request_with(std::string(mebibyte + 1, 'x')));
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  raw_client client{listener->port()};
  client.send(request_with(std::string(mebibyte, 'x')));
  auto one = request(0);
  EXPECT_EQ(one.request.body.size(), mebibyte);
  one.reply->answer(answer_with(std::string(mebibyte, 'y') + "!"));
  EXPECT_TRUE(has_status(client.read_until("!"), 200));
}

TEST_F(http_listener_bounds, where_there_is_no_room_at_all_that_is_still_said) {
  open();
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  request(0);
  ASSERT_TRUE(eventually([&] { return budget->used() == 0; }));
  memory_budget::share others;
  ASSERT_TRUE(budget->take(budget->total(), others));
  EXPECT_TRUE(has_status(refusal_of(garbage), 400));
  EXPECT_TRUE(has_status(refusal_of(request_with("{}")), 503));
  // An answer that there is no room for isn't silence.
  request(0).reply->answer(answer_with("a long story"));
  auto answer = client.read_until("later");
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  EXPECT_EQ(answer.find("a long story"), std::string::npos) << answer;
}

TEST_F(http_listener_bounds, announcements_starve_nobody) {
  open();
  std::vector<std::unique_ptr<raw_client>> idle;
  for (int i = 0; i < 30; ++i) {
    idle.push_back(std::make_unique<raw_client>(listener->port()));
    idle.back()->send(fmt::format("{}Content-Length: {}\r\n\r\n{{", head, io::http_bounds{}.body));
  }
  raw_client client{listener->port()};
  client.send(request_with(std::string(4 * mebibyte, 'x')));
  EXPECT_EQ(request(0).request.body.size(), 4 * mebibyte);
  EXPECT_TRUE(eventually([&] { return budget->used() == 30; })) << budget->used();
  idle.clear();
  EXPECT_TRUE(eventually([&] { return budget->used() == 0; }));
}

TEST_F(http_listener_bounds, one_address_has_a_share_of_the_connections) {
  io::http_bounds bounds;
  bounds.connections_per_address = 2;
  bounds.counts_loopback = true;
  open(bounds);
  std::vector<std::unique_ptr<raw_client>> greedy;
  for (std::size_t i = 0; i < 2; ++i) {
    greedy.push_back(std::make_unique<raw_client>(listener->port(), 2));
    greedy.back()->send(request_with("busy"));
    request(i);
  }
  raw_client third{listener->port(), 2};
  EXPECT_TRUE(has_status(third.read_all(), 503));
  EXPECT_TRUE(third.closed());
  expect_service();
  // One that waits for a request makes room for its own address.
  request(0).reply->answer(answer_with("done"));
  greedy[0]->read_until("done");
  raw_client fourth{listener->port(), 2};
  fourth.send(request_with("fourth"));
  EXPECT_EQ(request(3).request.body, "fourth");
  greedy[0]->read_all();
  EXPECT_TRUE(greedy[0]->closed());
}

TEST_F(http_listener_bounds, loopback_has_no_such_share_unless_told) {
  io::http_bounds bounds;
  bounds.connections_per_address = 1;
  open(bounds);
  raw_client first{listener->port()};
  raw_client second{listener->port()};
  first.send(request_with("first"));
  request(0);
  second.send(request_with("second"));
  EXPECT_EQ(request(1).request.body, "second");
}

TEST_F(http_listener_bounds, who_was_turned_away_keeps_nobody_out) {
  io::http_bounds bounds;
  bounds.connections = 5;
  bounds.connections_per_address = 1;
  bounds.counts_loopback = true;
  open(bounds);
  raw_client busy{listener->port(), 2};
  busy.send(request_with("busy"));
  request(0);
  std::vector<std::unique_ptr<raw_client>> flood;
  for (int i = 0; i < 50; ++i) {
    flood.push_back(std::make_unique<raw_client>(listener->port(), 2));
  }
  expect_service();
  for (auto& each : flood) {
    auto said = each->read_all();
    EXPECT_TRUE(each->closed());
    EXPECT_TRUE(said.empty() || has_status(said, 503)) << said;
  }
  EXPECT_FALSE(busy.closed());
}

TEST(client_network, is_what_one_client_has_for_itself) {
  auto network = [](const char* address) {
    return io::client_network(boost::asio::ip::make_address(address));
  };
  EXPECT_EQ(network("192.0.2.1"), "192.0.2.1");
  EXPECT_NE(network("192.0.2.1"), network("192.0.2.2"));
  EXPECT_EQ(network("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
  EXPECT_NE(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
}

TEST_F(http_listener_bounds, slow_clients_are_given_up_at_each_stage) {
  io::http_bounds bounds;
  bounds.idle_time = bounds.header_time = bounds.body_time = 200ms;
  open(bounds);
  EXPECT_EQ(refusal_of(""), "");
  auto answer = refusal_of("POST /mcp HTTP/1.1\r\nHost: loc");
  EXPECT_TRUE(has_status(answer, 408)) << answer;
  answer = refusal_of(fmt::format("{}Content-Length: 10\r\n\r\n{{", head));
  EXPECT_TRUE(has_status(answer, 408)) << answer;
}

TEST_F(http_listener_bounds, a_body_that_trickles_is_given_up_though_something_always_comes) {
  io::http_bounds bounds;
  bounds.body_time = 300ms;
  open(bounds);
  raw_client client{listener->port()};
  client.send(fmt::format("{}Transfer-Encoding: chunked\r\n\r\n", head));
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(20ms);
    return !client.send("1\r\nx\r\n");
  }));
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener_bounds, a_client_that_does_not_read_is_given_up) {
  io::http_bounds bounds;
  bounds.write_ahead = 200'000;
  open(bounds);
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  auto one = request(0);
  monitored<bool> gone;
  one.reply->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  one.reply->begin({200, {}, {}});
  // More than any socket buffers.
  for (int i = 0; i < 1000 && !one.reply->gone(); ++i) {
    one.reply->write(std::string(100'000, 'x'));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(gone.wait([](bool done) { return done; }));
}

TEST_F(http_listener_bounds, a_client_that_stops_reading_is_given_up_after_a_while) {
  io::http_bounds bounds;
  bounds.write_time = 200ms;
  open(bounds);
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  auto one = request(0);
  monitored<bool> gone;
  one.reply->when_gone([&gone] { gone.change([](bool& done) { done = true; }); });
  one.reply->begin({200, {}, {}});
  // One piece is let through, however large; the client takes none of the end of it.
  one.reply->write(std::string(7 * mebibyte, 'x'));
  EXPECT_TRUE(gone.wait([](bool done) { return done; }));
}

TEST_F(http_listener_bounds, idle_connections_make_room_and_busy_ones_do_not) {
  io::http_bounds bounds;
  bounds.connections = 2;
  open(bounds);
  raw_client busy{listener->port()};
  busy.send(request_with("busy"));
  request(0);
  raw_client idle{listener->port()};
  idle.send(request_with("idle"));
  request(1).reply->answer(answer_with("ok"));
  idle.read_until("ok");
  raw_client third{listener->port()};
  third.send(request_with("third"));
  EXPECT_EQ(request(2).request.body, "third");
  idle.read_all();
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(third.closed());
  auto answer = refusal_of("");
  EXPECT_TRUE(has_status(answer, 503)) << answer;
  EXPECT_NE(answer.find("Retry-After"), std::string::npos) << answer;
  request(0).reply->answer(answer_with("still here"));
  busy.read_until("still here");
  EXPECT_FALSE(busy.closed());
}

TEST_F(http_listener_bounds, who_dawdles_over_a_header_makes_room_too) {
  io::http_bounds bounds;
  bounds.connections = 1;
  bounds.dawdle_time = 0ms;
  open(bounds);
  raw_client slow{listener->port()};
  slow.send("POST /mcp HTTP/1.1\r\nHost: loc");
  EXPECT_TRUE(has_status(refusal_of(garbage), 400));
  slow.read_all();
  EXPECT_TRUE(slow.closed());
}

TEST_F(http_listener_bounds, a_flood_of_connections_leaves_others_alone) {
  open();
  std::vector<std::unique_ptr<raw_client>> flood;
  for (int i = 0; i < 100; ++i) {
    flood.push_back(std::make_unique<raw_client>(listener->port()));
    flood.back()->send(i % 2 == 0 ? std::string_view{"POST /mcp HTTP/1.1\r\nHost:"} : garbage);
  }
  raw_client client{listener->port()};
  client.send(request_with("{}"));
  request(0).reply->answer(answer_with("served"));
  EXPECT_TRUE(has_status(client.read_until("served"), 200));
}

} // namespace
} // namespace bulkhead
