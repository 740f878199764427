#include "tests/io/certificates.hpp"
#include "tests/io/tls_client.hpp"

namespace bulkhead {
namespace {

using namespace testing;

/// A listener that speaks TLS.
struct http_listener_tls : listening {
  http_listener_tls() { options.tls = first; }

  /// Is a client served that does nothing wrong?
  void expect_tls_service() {
    auto index = came.get().size();
    tls_client client{listener->port(), first.certificate};
    client.send(request_with("fine"));
    request(index).reply->answer(answer_with("served"));
    EXPECT_TRUE(has_status(client.read_until("served"), 200)) << client.take();
  }

  certificates made;
  tls_files first = made.make(1);
};

TEST_F(http_listener_tls, requests_and_answers_go_through_it) {
  open();
  tls_client client{listener->port(), first.certificate};
  ASSERT_TRUE(client.agreed());
  EXPECT_EQ(client.version(), "TLSv1.3");
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send(request_with(fmt::format("{{\"a\":{}}}", i))));
    auto one = request(i);
    EXPECT_EQ(one.request.body, fmt::format("{{\"a\":{}}}", i));
    one.reply->answer(answer_with(fmt::format("<{}>", i)));
    EXPECT_TRUE(has_status(client.read_until(fmt::format("<{}>", i)), 200));
    client.take();
  }
  ASSERT_TRUE(client.send(request_with("{}")));
  request(2).reply->begin({200, {}, {}});
  request(2).reply->write("data: 1\n\n");
  client.read_until("data: 1\n\n");
  request(2).reply->end();
  client.read_until("0\r\n\r\n");
}

TEST_F(http_listener_tls, much_goes_through_it_in_both_directions) {
  open();
  tls_client client{listener->port(), first.certificate};
  std::string much;
  while (much.size() < 2 * mebibyte) {
    much += fmt::format("{},", much.size());
  }
  std::thread sender{[&] { client.send(request_with(much)); }};
  auto one = request(0);
  sender.join();
  EXPECT_TRUE(one.request.body == much);
  one.reply->answer(answer_with(much + "!"));
  auto answer = client.read_until("!");
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + much + "!"));
}

TEST_F(http_listener_tls, a_client_that_sends_too_much_gets_to_read_why) {
  io::http_bounds bounds;
  bounds.body = 100'000;
  open(bounds);
  tls_client client{listener->port(), first.certificate};
  // The server may have closed its end before all of it is out.
  client.send(request_with(std::string(150'000, 'x')));
  auto said = client.read_all();
  EXPECT_TRUE(has_status(said, 413)) << said;
  EXPECT_EQ(answers_in(said), 1) << said;
  EXPECT_TRUE(client.ended_well());
}

TEST_F(http_listener_tls, keys_may_change_within_it) {
  open();
  tls_client client{listener->port(), first.certificate};
  const std::string much(2 * mebibyte, 'x');
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(client.update_keys());
    client.send(request_with("{}"));
    request(i).reply->answer(answer_with(much + "!"));
    // While it is written.
    EXPECT_TRUE(client.update_keys());
    EXPECT_TRUE(client.read_until("!").ends_with("\r\n\r\n" + much + "!"));
    client.take();
  }
}

TEST_F(http_listener_tls, whoever_leaves_while_keys_change_and_much_is_written_leaves_nothing) {
  open();
  for (std::size_t i = 0; i < 5; ++i) {
    auto client = std::make_unique<tls_client>(listener->port(), first.certificate);
    client->send(request_with("{}"));
    auto one = request(i);
    one.reply->begin({200, {}, {}});
    one.reply->write(std::string(3 * mebibyte, 'x'));
    client->read_until("xxx");
    EXPECT_TRUE(client->update_keys());
    client.reset();
    EXPECT_TRUE(eventually([&] { return one.reply->gone(); }));
  }
  EXPECT_TRUE(eventually([&] { return budget->used() == 0; }));
  expect_tls_service();
}

TEST_F(http_listener_tls, pipelined_requests_are_answered_in_order) {
  open();
  tls_client client{listener->port(), first.certificate};
  client.send(request_with("0") + request_with("1"));
  client.send(request_with("2"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(request(i).request.body, std::to_string(i));
    request(i).reply->answer(answer_with(fmt::format("<{}>", i)));
  }
  EXPECT_EQ(answers_in(client.read_until("<2>")), 3);
}

TEST_F(http_listener_tls, its_end_is_said) {
  io::http_bounds bounds;
  bounds.idle_time = 200ms;
  open(bounds);
  tls_client refused{listener->port(), first.certificate};
  refused.send("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(has_status(refused.read_all(), 404));
  EXPECT_TRUE(refused.ended_well());
  tls_client idle{listener->port(), first.certificate};
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(idle.ended_well());
}

TEST_F(http_listener_tls, a_client_that_goes_away_is_noticed) {
  open();
  monitored<int> gone;
  for (bool politely : {true, false}) {
    auto client = std::make_unique<tls_client>(listener->port(), first.certificate);
    client->send(request_with("{}"));
    auto before = gone.get();
    request(static_cast<std::size_t>(before)).reply->when_gone([&gone] {
      gone.change([](int& count) { ++count; });
    });
    politely ? client->close() : client.reset();
    EXPECT_TRUE(gone.wait([&](int count) { return count == before + 1; }));
  }
}

TEST_F(http_listener_tls, old_versions_and_weak_ciphers_are_refused) {
  open();
  EXPECT_FALSE((tls_client{listener->port(), first.certificate, {TLS1_1_VERSION}}.agreed()));
  tls_client good{listener->port(), first.certificate, {TLS1_2_VERSION}};
  EXPECT_TRUE(good.agreed());
  EXPECT_EQ(good.version(), "TLSv1.2");
  for (const auto* ciphers : {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256", "aNULL"}) {
    tls_client weak{listener->port(), first.certificate, {TLS1_2_VERSION, "", ciphers}};
    EXPECT_FALSE(weak.agreed()) << ciphers;
  }
}

TEST_F(http_listener_tls, the_protocol_is_negotiated) {
  open();
  tls_client both{listener->port(), first.certificate, {TLS1_3_VERSION, "\x02h2\x08http/1.1"}};
  EXPECT_TRUE(both.agreed());
  EXPECT_EQ(both.protocol(), "http/1.1");
  tls_client other{listener->port(), first.certificate, {TLS1_3_VERSION, "\x02h2"}};
  // In TLS 1.3 a client may learn of the refusal only when it reads.
  other.read_all();
  EXPECT_FALSE(other.ended_well());
  EXPECT_EQ(other.protocol(), "");
  expect_tls_service();
}

TEST_F(http_listener_tls, who_does_not_agree_in_time_is_given_up_and_others_are_served) {
  io::http_bounds bounds;
  bounds.handshake_time = 500ms;
  open(bounds);
  raw_client silent{listener->port()};
  raw_client half{listener->port()};
  half.send("\x16\x03\x01\x02");
  expect_tls_service();
  for (auto* client : {&silent, &half}) {
    EXPECT_EQ(client->read_all(), "");
    EXPECT_TRUE(client->closed());
  }
}

TEST_F(http_listener_tls, plain_requests_get_no_answer) {
  open();
  auto said = refusal_of(request_with("{}"));
  EXPECT_EQ(answers_in(said), 0) << said;
  EXPECT_TRUE(came.get().empty());
}

TEST_F(http_listener_tls, who_has_not_agreed_makes_room) {
  io::http_bounds bounds;
  bounds.connections = 1;
  bounds.dawdle_time = 0ms;
  open(bounds);
  raw_client silent{listener->port()};
  expect_tls_service();
  silent.read_all();
  EXPECT_TRUE(silent.closed());
}

TEST_F(http_listener_tls, who_is_turned_away_learns_why) {
  io::http_bounds bounds;
  bounds.connections = 1;
  open(bounds);
  tls_client busy{listener->port(), first.certificate};
  busy.send(request_with("{}"));
  request(0);
  tls_client other{listener->port(), first.certificate};
  EXPECT_TRUE(has_status(other.read_all(), 503));
  EXPECT_TRUE(other.ended_well());
}

TEST_F(http_listener_tls, a_new_certificate_is_for_new_connections) {
  open();
  tls_client old{listener->port(), first.certificate};
  EXPECT_EQ(old.serial(), 1);
  auto second = made.make(2);
  ASSERT_TRUE(listener->set_tls(second));
  on_io(io, [] { return 0; });
  EXPECT_FALSE((tls_client{listener->port(), first.certificate}.agreed()));
  tls_client fresh{listener->port(), second.certificate};
  EXPECT_TRUE(fresh.agreed());
  EXPECT_EQ(fresh.serial(), 2);
  old.send(request_with("still here"));
  EXPECT_EQ(request(0).request.body, "still here");
  request(0).reply->answer(answer_with("fine"));
  EXPECT_TRUE(has_status(old.read_until("fine"), 200));
}

TEST_F(http_listener_tls, a_bad_certificate_changes_nothing_and_says_why) {
  open();
  auto second = made.make(2);
  auto ended = made.make(3, -1);
  auto nonsense = made.nonsense();
  struct bad {
    tls_files files;
    std::string file;
    std::string reason;
  };
  for (const auto& [files, file, reason] : {
           bad{{"/nowhere.crt", second.key}, "/nowhere.crt", "No such file"},
           bad{{second.certificate, "/nowhere.key"}, "/nowhere.key", "No such file"},
           bad{{nonsense, second.key}, nonsense, "PEM"},
           bad{{second.certificate, nonsense}, nonsense, "PEM"},
           bad{{second.certificate, first.key}, first.key, "doesn't belong"},
           bad{certificates::encrypted(second), second.key + ".encrypted", "isn't encrypted"},
           bad{ended, ended.certificate, "has ended"},
       }) {
    auto set = listener->set_tls(files);
    ASSERT_FALSE(set) << file;
    EXPECT_EQ(set.error().code, errc::invalid_argument);
    EXPECT_NE(set.error().message.find(file), std::string::npos) << set.error().message;
    EXPECT_NE(set.error().message.find(reason), std::string::npos) << set.error().message;
    on_io(io, [] { return 0; });
    EXPECT_TRUE((tls_client{listener->port(), first.certificate}.agreed()));
  }
  options.tls = ended;
  auto opened = io::http_listener::open(io, options, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::invalid_argument);
}

TEST_F(http_listener_tls, closing_lets_answers_out_and_refuses_what_comes_late) {
  open();
  tls_client busy{listener->port(), first.certificate};
  busy.send(request_with("{}"));
  request(0);
  tls_client late{listener->port(), first.certificate};
  late.send("POST /mcp HTTP/1.1\r\nHost: loc");
  expect_tls_service();
  listener->close(patience, {});
  EXPECT_TRUE(has_status(late.read_all(), 503));
  EXPECT_TRUE(late.ended_well());
  request(0).reply->answer(answer_with("the last word"));
  EXPECT_NE(busy.read_all().find("the last word"), std::string::npos);
  EXPECT_TRUE(busy.ended_well());
}

} // namespace
} // namespace bulkhead
