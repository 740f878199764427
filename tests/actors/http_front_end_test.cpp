#define CAF_SUITE http_front_end

#include "actors/http_session.hpp"
#include "tests/support/http_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(http_front_end_tests, http_fixture)

CAF_TEST(a session has to be named and known) {
  CAF_CHECK(post(request(1, "ping"))->whole.status == 400u);
  session = "no such session";
  CAF_CHECK(legacy(1, "ping")->whole.status == 404u);
  auto id = legacy(7, "ping")->body()["id"].get<int>();
  CAF_CHECK(id == 7);
}

CAF_TEST(a session of another principal looks like none) {
  open();
  auto foreign = post(request(1, "ping"), in_session(), "eve");
  auto unknown = post(request(1, "ping"), {{"Mcp-Session-Id", "x"}}, "eve");
  CAF_CHECK(foreign->whole.status == 404u);
  CAF_CHECK(foreign->whole.body == unknown->whole.body);
  CAF_CHECK(legacy(2, "ping")->whole.status == 200u);
}

CAF_TEST(the session unused for longest makes room unless it is at work) {
  http_allowance allowance;
  allowance.sessions = 2;
  start(allowance);
  open();
  auto first = session;
  auto running = call(1);
  advance_time(seconds{1});
  open();
  auto second = session;
  advance_time(seconds{1});
  open();
  session = second;
  CAF_CHECK(legacy(1, "ping")->whole.status == 404u);
  session = first;
  CAF_CHECK(legacy(2, "ping")->whole.status == 200u);
  CAF_CHECK(!running->ended);
  // Another principal has its own allowance.
  CAF_CHECK(initialize("eve")->whole.status == 200u);
}

CAF_TEST(sessions that are all at work make no room) {
  http_allowance allowance;
  allowance.sessions = 1;
  start(allowance);
  open();
  call(1);
  auto refused = initialize();
  CAF_CHECK(refused->whole.status == 503u);
  CAF_CHECK(!refused->field("Retry-After").empty());
}

CAF_TEST(a modern request needs no session) {
  auto answer = modern("d", "server/discover");
  CAF_CHECK(answer->whole.status == 200u);
  CAF_CHECK(answer->body()["id"] == "d");
  CAF_CHECK(answer->body()["result"].contains("supportedVersions"));
  CAF_CHECK(answer->field("Mcp-Session-Id").empty());
  auto unknown = modern(2, "ping");
  CAF_CHECK(unknown->whole.status == 404u);
  CAF_CHECK(unknown->body()["id"] == 2);
}

CAF_TEST(a modern client may not GET or DELETE) {
  for (const auto* method : {"GET", "DELETE"}) {
    auto answer = ask({method, "/mcp", {{"MCP-Protocol-Version", "2026-07-28"}}, {}, {}});
    CAF_CHECK(answer->whole.status == 405u);
    CAF_CHECK(answer->field("Allow") == "POST");
  }
}

CAF_TEST(modern clients may use the same ids at once) {
  auto one = modern_call(1);
  auto other = modern_call(1);
  finish(1, "the other");
  finish(0, "the one");
  CAF_CHECK(one->body()["id"] == 1);
  CAF_CHECK(text_of(one->body()).find("the one") != std::string::npos);
  CAF_CHECK(text_of(other->body()).find("the other") != std::string::npos);
}

CAF_TEST(progress makes a modern answer a stream without ids) {
  auto answer = modern_call("x", {{"progressToken", 0}});
  CAF_CHECK(answer->begun);
  CAF_CHECK(answer->ids().empty());
  finish(0, "done");
  CAF_CHECK(answer->events().back()["id"] == "x");
  CAF_CHECK(answer->ended);
}

CAF_TEST(a modern client that goes away cancels its request alone) {
  auto one = modern_call(1);
  auto other = modern_call(2);
  lose(one);
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(!(*runs)[1]->cancelled);
  finish(1, "goes on");
  CAF_CHECK(other->whole.status == 200u);
}

CAF_TEST(a subscription is named by its clients id) {
  auto answer =
      modern("sub", "subscriptions/listen", {{"notifications", {{"resourcesListChanged", true}}}});
  auto first = answer->events().at(0);
  CAF_CHECK(first["method"] == "notifications/subscriptions/acknowledged");
  CAF_CHECK(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub");
  CAF_CHECK(!answer->ended);
}

CAF_TEST(too many modern requests are refused) {
  http_allowance allowance;
  allowance.modern_in_flight = 1;
  start(allowance);
  modern_call(1);
  CAF_CHECK(modern_call(2)->whole.status == 429u);
  CAF_CHECK(modern(3, "server/discover", json::object(), "eve")->whole.status == 200u);
}

CAF_TEST(a session that fails takes only its own requests along) {
  open();
  auto running = call(1);
  auto fine = modern_call(1);
  using pointer = http_transport_actor::stateful_pointer<http_session_state>;
  auto client = state().sessions.at(session).actor;
  auto inner = deref<std::remove_pointer_t<pointer>>(client).state.session;
  caf::anon_send_exit(inner, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(running->ended);
  CAF_CHECK(running->events().back()["error"]["code"] == -32603);
  CAF_CHECK(legacy(2, "ping")->whole.status == 404u);
  finish(1, "unharmed");
  CAF_CHECK(fine->whole.status == 200u);
  open();
  CAF_CHECK(legacy(3, "ping")->whole.status == 200u);
}

CAF_TEST(a stop ends all and answers when all has ended) {
  open();
  auto running = call(1);
  auto reader = get();
  auto calling = modern_call(1);
  auto listening =
      modern(2, "subscriptions/listen", {{"notifications", {{"resourcesListChanged", true}}}});
  auto stopped = stop();
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK((*runs)[1]->cancelled);
  CAF_CHECK(initialize()->whole.status == 503u);
  finish(0, "x");
  finish(1, "x");
  CAF_CHECK(*stopped);
  for (const auto& each : {running, reader, calling, listening}) {
    CAF_CHECK(each->answered || each->ended);
    CAF_CHECK(!each->abandoned);
  }
}

CAF_TEST(whoever waits at a stop is told so and to come again) {
  open();
  auto streaming = call(1);
  revision = "2025-06-18";
  auto waiting = call(2, false);
  auto modern_waiting = modern_call(3);
  auto modern_streaming = modern_call(4, {{"progressToken", 0}});
  stop();
  for (std::size_t run = 0; run < 4; ++run) {
    finish(run, "x");
  }
  for (const auto& each : {waiting, modern_waiting}) {
    CAF_CHECK(each->whole.status == 503u);
    CAF_CHECK(!each->field("Retry-After").empty());
    CAF_CHECK(each->body()["error"]["message"].get<std::string>().find("stopping") !=
              std::string::npos);
  }
  CAF_CHECK(waiting->body()["id"] == 2);
  CAF_CHECK(modern_waiting->body()["id"] == 3);
  CAF_CHECK(streaming->events().back()["id"] == 1);
  CAF_CHECK(streaming->events().back()["error"]["code"] == -32603);
  CAF_CHECK(modern_streaming->events().back()["id"] == 4);
  CAF_CHECK(modern_streaming->events().back()["error"]["code"] == -32603);
}

CAF_TEST(whoever waits as its tenant goes is told so) {
  open();
  revision = "2025-06-18";
  auto waiting = call(1, false);
  caf::anon_send(front_end, stop_atom::value, std::string{"ali"});
  consume_messages();
  finish(0, "x");
  CAF_CHECK(waiting->whole.status == 503u);
  CAF_CHECK(waiting->body()["id"] == 1);
}

CAF_TEST(the front end hands bodies on without looking at them) {
  auto answer = std::make_shared<recorded_answer>();
  http_requests_to(front_end)({"POST", "/mcp", {}, std::string(1000, 'x'), "eve"}, {},
                              std::make_shared<recording_reply>(answer));
  sched.run_once();
  CAF_CHECK(state().readers.contains("eve"));
  CAF_CHECK(!answer->answered);
  consume_messages();
  CAF_CHECK(answer->whole.status == 400u);
}

CAF_TEST(each principal has a reader and one that is not served has none) {
  CAF_CHECK(modern(1, "tools/list")->whole.status == 200u);
  CAF_CHECK(modern(1, "tools/list", json::object(), "eve")->whole.status == 200u);
  gone = {"made up"};
  CAF_CHECK(modern(1, "tools/list", json::object(), "made up")->whole.status == 403u);
  CAF_CHECK(state().readers.size() == 2u);
  caf::anon_send(front_end, stop_atom::value, std::string{"eve"});
  consume_messages();
  CAF_CHECK(state().readers.size() == 1u);
}

CAF_TEST(large bodies are taken one after another) {
  std::vector<answer_ptr> answers;
  for (int id = 0; id < 5; ++id) {
    auto answer = std::make_shared<recorded_answer>();
    json params = {{"_meta",
                    {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                     {"io.modelcontextprotocol/clientCapabilities", json::object()},
                     {"padding", std::string(100'000, 'x')}}}};
    incoming_request large{"POST",
                           "/mcp",
                           {{"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", "tools/list"}},
                           request(id, "tools/list", params).dump(),
                           "ali"};
    http_requests_to(front_end)(std::move(large), {}, std::make_shared<recording_reply>(answer));
    answers.push_back(std::move(answer));
  }
  consume_messages();
  for (const auto& answer : answers) {
    CAF_CHECK(answer->whole.status == 200u);
  }
}

CAF_TEST(a call that finds the queue full is put off whenever that is noticed) {
  full = {"ali"};
  admission->overloaded = true;
  auto plain = modern_call(1);
  CAF_CHECK(plain->whole.status == 429u);
  CAF_CHECK(plain->field("Retry-After") == "2");
  CAF_CHECK(plain->body()["id"] == 1);
  CAF_CHECK(plain->body()["error"]["data"]["reason"] == "overloaded");
  CAF_CHECK(plain->body()["error"]["data"]["retryAfterSeconds"] == 2);
  CAF_CHECK(env->budget->used() == 0u);
  open();
  auto begun = call(2);
  CAF_CHECK(begun->begun);
  auto last = begun->events().back();
  CAF_CHECK(last["id"] == 2);
  CAF_CHECK(last["error"]["data"]["reason"] == "overloaded");
  revision = "2025-06-18";
  CAF_CHECK(call(3, false)->whole.status == 429u);
  // Nothing of them is left.
  admission->overloaded = false;
  auto next = call(3, false);
  finish(0, "served");
  CAF_CHECK(next->whole.status == 200u);
}

CAF_TEST(a call that is refused for another reason has a result that says why) {
  admission->overloaded = true;
  auto answer = modern_call(1);
  CAF_CHECK(answer->whole.status == 200u);
  CAF_CHECK(answer->body()["result"]["structuredContent"]["status"] == "unavailable");
}

CAF_TEST(requests that come too fast are put off and those of others are not ) {
  hasty = {"eve"};
  auto put_off = modern(1, "tools/list", json::object(), "eve");
  CAF_CHECK(put_off->whole.status == 429u);
  CAF_CHECK(put_off->field("Retry-After") == "7");
  auto error = put_off->body()["error"];
  CAF_CHECK(error["data"]["retryAfterSeconds"] == 7);
  CAF_CHECK(modern(1, "tools/list")->whole.status == 200u);
}

CAF_TEST(a call that would only wait is put off and other requests are not ) {
  busy = {"ali"};
  open();
  auto put_off = call(5);
  CAF_CHECK(put_off->whole.status == 429u);
  CAF_CHECK(put_off->body()["id"] == 5);
  CAF_CHECK(runs->empty());
  CAF_CHECK(modern_call(6)->whole.status == 429u);
  CAF_CHECK(legacy(7, "ping")->whole.status == 200u);
}

CAF_TEST(a principal that is served no more has nothing left) {
  open();
  auto mine = session;
  auto running = modern_call(1);
  session = initialize("eve")->field("Mcp-Session-Id");
  gone = {"ali"};
  caf::anon_send(front_end, stop_atom::value, std::string{"ali"});
  consume_messages();
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(post(request(2, "ping"), in_session(), "eve")->whole.status == 200u);
  session = mine;
  CAF_CHECK(legacy(2, "ping")->whole.status == 403u);
  CAF_CHECK(get()->whole.status == 404u);
  CAF_CHECK(initialize()->whole.status == 403u);
  CAF_CHECK(modern(3, "tools/list")->whole.status == 403u);
}

CAF_TEST_FIXTURE_SCOPE_END()
