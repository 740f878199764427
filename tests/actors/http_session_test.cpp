#define CAF_SUITE http_session

#include "actors/http_session.hpp"
#include "tests/support/http_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(http_session_tests, http_fixture)

CAF_TEST(initialize opens a session whose id the answer gives) {
  auto answer = initialize();
  CAF_CHECK(answer->whole.status == 200u);
  CAF_CHECK(answer->field("Content-Type") == "application/json");
  CAF_CHECK(!answer->field("Mcp-Session-Id").empty());
  auto spoken = answer->body()["result"]["protocolVersion"].get<std::string>();
  CAF_CHECK(spoken == "2025-11-25");
  session = answer->field("Mcp-Session-Id");
  auto pong = legacy(1, "ping");
  CAF_CHECK(pong->whole.status == 200u);
  CAF_CHECK(pong->field("Mcp-Session-Id").empty());
}

CAF_TEST(an initialize that fails leaves no session) {
  auto answer = initialize("ali", {{"protocolVersion", 5}});
  CAF_CHECK(answer->body().contains("error"));
  CAF_CHECK(answer->field("Mcp-Session-Id").empty());
  CAF_CHECK(state().sessions.empty());
  CAF_CHECK(state().all.empty());
}

CAF_TEST(DELETE ends a session) {
  open();
  auto running = call(1);
  CAF_CHECK(ask({"DELETE", "/mcp", in_session(), {}, {}})->whole.status == 204u);
  CAF_CHECK(legacy(2, "ping")->whole.status == 404u);
  CAF_CHECK(ask({"DELETE", "/mcp", in_session(), {}, {}})->whole.status == 404u);
  CAF_CHECK((*runs)[0]->cancelled);
  finish(0, "too late");
  CAF_CHECK(running->ended);
  CAF_CHECK(state().all.empty());
}

CAF_TEST(notifications and responses are accepted) {
  open();
  json initialized = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
  auto answer = post(initialized, in_session());
  CAF_CHECK(answer->whole.status == 202u);
  CAF_CHECK(answer->whole.body.empty());
  json response = {{"jsonrpc", "2.0"}, {"id", "x"}, {"result", json::object()}};
  CAF_CHECK(post(response, in_session())->whole.status == 202u);
}

CAF_TEST(a call is answered by a stream that begins at once and ends with the result) {
  open();
  auto answer = call(1);
  CAF_CHECK(answer->begun);
  CAF_CHECK(answer->field("Content-Type") == "text/event-stream");
  CAF_CHECK(answer->field("X-Accel-Buffering") == "no");
  CAF_CHECK(answer->stream.starts_with("id: 2-0\ndata: \n\n"));
  auto before = answer->events();
  CAF_CHECK(before.back()["method"] == "notifications/progress");
  CAF_CHECK(!answer->ended);
  finish(0, "forty-two");
  auto result = answer->events().back();
  CAF_CHECK(result["id"] == 1);
  CAF_CHECK(text_of(result).find("forty-two") != std::string::npos);
  CAF_CHECK(answer->ended);
}

CAF_TEST(clients of older revisions get no event without data) {
  open();
  revision = "2025-06-18";
  auto silent = call(1, false);
  CAF_CHECK(!silent->begun);
  finish(0, "plain");
  CAF_CHECK(silent->whole.status == 200u);
  CAF_CHECK(text_of(silent->body()).find("plain") != std::string::npos);
  auto telling = call(2);
  CAF_CHECK(telling->begun);
  CAF_CHECK(telling->stream.find("data: \n") == std::string::npos);
  CAF_CHECK(!telling->events().empty());
}

CAF_TEST(a disconnect cancels nothing and its client comes back for the rest) {
  open();
  auto lost = call(1);
  auto last = lost->ids().back();
  lose(lost);
  CAF_CHECK(!(*runs)[0]->cancelled);
  finish(0, "later");
  auto again = get({{"Last-Event-ID", last}});
  CAF_CHECK(again->whole.status == 200u);
  auto events = again->events();
  CAF_REQUIRE(events.size() == 1u);
  CAF_CHECK(text_of(events[0]).find("later") != std::string::npos);
  CAF_CHECK(again->ended);
  // It may get lost once more.
  auto once_more = get({{"Last-Event-ID", last}});
  CAF_CHECK(once_more->events().size() == 1u);
}

CAF_TEST(who comes back early gets the rest as it comes) {
  open();
  auto lost = call(1);
  auto first = lost->ids().front();
  lose(lost);
  auto again = get({{"Last-Event-ID", first}});
  CAF_CHECK(!again->ended);
  auto told_again = again->events().size();
  auto told_before = lost->events().size();
  CAF_CHECK(told_again == told_before);
  finish(0, "now");
  CAF_CHECK(text_of(again->events().back()).find("now") != std::string::npos);
  CAF_CHECK(again->ended);
}

CAF_TEST(a reader that comes takes the place of one that has not been missed yet) {
  open();
  auto first = call(1);
  auto second = get({{"Last-Event-ID", first->ids().front()}});
  CAF_CHECK(first->ended);
  // The first one's connection ends only now.
  lose(first);
  finish(0, "for the second");
  CAF_CHECK(second->ended);
  CAF_CHECK(first->events().size() < second->events().size());
}

CAF_TEST(streams do not mix) {
  open();
  auto one = call(1);
  auto other = call(2);
  lose(one);
  finish(1, "two");
  finish(0, "one");
  auto again = get({{"Last-Event-ID", one->ids().back()}});
  CAF_REQUIRE(again->events().size() == 1u);
  auto id = again->events()[0]["id"].get<int>();
  CAF_CHECK(id == 1);
  auto other_id = other->events().back()["id"].get<int>();
  CAF_CHECK(other_id == 2);
}

CAF_TEST(an event that is not kept can not be come back to) {
  open();
  for (const auto* id : {"", "x", "99-1", "1-0"}) {
    CAF_CHECK(get({{"Last-Event-ID", id}})->whole.status == 400u);
  }
}

CAF_TEST(what is kept for who comes back is bounded) {
  http_allowance allowance;
  allowance.replay = 600;
  allowance.streams = 2;
  start(allowance);
  open();
  std::vector<answer_ptr> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(call(i + 1, false));
    finish(static_cast<std::size_t>(i), std::string(100, 'x'));
  }
  pass(seconds{20});
  // The oldest are gone, the youngest is there.
  CAF_CHECK(get({{"Last-Event-ID", all[0]->ids().front()}})->whole.status == 400u);
  auto youngest = get({{"Last-Event-ID", all[4]->ids().front()}});
  CAF_CHECK(youngest->events().size() == 1u);
}

CAF_TEST(what belongs to no request goes to the stream that a GET opens) {
  open();
  post({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}, in_session());
  legacy(1, "resources/subscribe", {{"uri", "bulkhead://capabilities"}});
  auto stream = get();
  CAF_CHECK(stream->begun);
  configured->set(std::make_shared<server_catalogue>());
  consume_messages();
  CAF_CHECK(stream->notifications("notifications/resources/updated") == 1u);
  // What comes meanwhile waits.
  lose(stream);
  configured->set(std::make_shared<server_catalogue>());
  consume_messages();
  auto again = get();
  CAF_CHECK(again->notifications("notifications/resources/updated") == 1u);
  CAF_CHECK(!again->ended);
}

CAF_TEST(an id that is in use and too many requests are refused) {
  http_allowance allowance;
  allowance.in_flight = 2;
  start(allowance);
  open();
  auto first = call(1);
  auto same = call(1);
  CAF_CHECK(same->whole.status == 400u);
  call("1");
  auto too_many = call(3);
  CAF_CHECK(too_many->whole.status == 429u);
  CAF_CHECK(!too_many->field("Retry-After").empty());
  finish(0, "done");
  CAF_CHECK(first->ended);
  CAF_CHECK(call(4)->begun);
}

CAF_TEST(a call that is cancelled ends its stream without a result) {
  open();
  auto answer = call(1);
  json cancelled = {
      {"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}};
  CAF_CHECK(post(cancelled, in_session())->whole.status == 202u);
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(answer->ended);
  finish(0, "nobody wants it");
  for (const auto& event : answer->events()) {
    CAF_CHECK(!event.contains("result"));
  }
}

CAF_TEST(silent streams are kept alive and silent answers become streams) {
  open();
  revision = "2025-06-18";
  auto answer = call(1, false);
  CAF_CHECK(!answer->begun);
  pass(seconds{35});
  CAF_CHECK(answer->begun);
  CAF_CHECK(answer->stream.find(":\n\n") != std::string::npos);
  finish(0, "after all");
  CAF_CHECK(text_of(answer->events().back()).find("after all") != std::string::npos);
}

CAF_TEST(a session that nobody uses ends and one with a reader does not ) {
  http_allowance allowance;
  allowance.session_idle = seconds{60};
  start(allowance);
  open();
  auto reader = get();
  pass(seconds{120});
  CAF_CHECK(legacy(1, "ping")->whole.status == 200u);
  lose(reader);
  pass(seconds{120});
  CAF_CHECK(legacy(2, "ping")->whole.status == 404u);
  CAF_CHECK(state().all.empty());
}

CAF_TEST(requests_that_are_not_yet_streams_are_answered_when_the_session_is_lost) {
  open();
  revision = "2025-06-18";
  auto one = call(1, false);
  auto other = call(2, false);
  auto streaming = call(3);
  using pointer = http_transport_actor::stateful_pointer<http_session_state>;
  auto transport = state().sessions.at(session).actor;
  auto inner = deref<std::remove_pointer_t<pointer>>(transport).state.session;
  caf::anon_send_exit(inner, caf::exit_reason::kill);
  consume_messages();
  for (const auto& each : {one, other}) {
    CAF_CHECK(each->body()["error"]["code"] == -32603);
  }
  CAF_CHECK(streaming->events().back()["error"]["code"] == -32603);
  CAF_CHECK(legacy(4, "ping")->whole.status == 404u);
}

CAF_TEST_FIXTURE_SCOPE_END()
