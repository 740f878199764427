#define CAF_SUITE http_front_end

#include "actors/http_front_end.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/http_session.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using nlohmann::json;
using std::chrono::seconds;

namespace {

struct http_config : actor_config {
  http_config() {
    add_message_types<caf::id_block::bulkhead_process_host>();
    add_message_types<caf::id_block::bulkhead_http>();
  }
};

/// What a client was answered.
struct recorded_answer {
  outgoing_answer whole; ///< or the head of a stream
  std::string stream;
  bool answered = false;
  bool begun = false;
  bool ended = false;
  bool gone = false;
  bool abandoned = false;
  std::function<void()> told;

  std::string field(std::string_view name) const {
    for (const auto& each : whole.fields) {
      if (same_name(each.name, name)) {
        return each.value;
      }
    }
    return {};
  }

  json body() const { return json::parse(whole.body, nullptr, false); }

  /// The messages on the stream.
  std::vector<json> events() const {
    std::vector<json> found;
    std::istringstream lines{stream};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("data: {")) {
        found.push_back(json::parse(line.substr(6)));
      }
    }
    return found;
  }

  /// The ids of its events, in order.
  std::vector<std::string> ids() const {
    std::vector<std::string> found;
    std::istringstream lines{stream};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("id: ")) {
        found.push_back(line.substr(4));
      }
    }
    return found;
  }
};

using answer_ptr = std::shared_ptr<recorded_answer>;

class recording_reply : public io::http_reply {
public:
  explicit recording_reply(answer_ptr to) : to_{std::move(to)} {}
  ~recording_reply() override {
    to_->abandoned = !to_->answered && !to_->ended;
    to_->told = nullptr;
  }

  void answer(outgoing_answer whole) override {
    to_->answered = true;
    to_->whole = std::move(whole);
  }
  void begin(outgoing_answer head) override {
    to_->begun = true;
    to_->whole = std::move(head);
  }
  void write(std::string bytes) override { to_->stream += bytes; }
  void end() override { to_->ended = to_->begun; }
  bool gone() const override { return to_->gone; }
  std::size_t unsent() const override { return 0; }
  void when_gone(std::function<void()> told) override { to_->told = std::move(told); }

private:
  answer_ptr to_;
};

struct fixture : test_coordinator_fixture<http_config> {
  fixture() { start({}); }

  ~fixture() override {
    caf::anon_send_exit(front_end, caf::exit_reason::kill);
    for (auto& run : *runs) {
      caf::anon_send_exit(run->actor, caf::exit_reason::user_shutdown);
    }
    for (const auto& client : clients()) {
      caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(scripted.admission, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(scripted.sessions(), caf::exit_reason::user_shutdown);
    consume_messages();
  }

  void start(http_allowance allowance) {
    if (front_end) {
      caf::anon_send_exit(front_end, caf::exit_reason::kill);
      caf::anon_send_exit(scripted.admission, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(scripted.sessions(), caf::exit_reason::user_shutdown);
    }
    scripted = scripted_context(sys, env, runs, admission, std::make_shared<server_catalogue>());
    http_front_end_context context;
    context.env = env;
    context.allowance = allowance;
    context.session_of = [this](const std::string& principal) {
      auto made = scripted;
      made.owner = principal;
      return made;
    };
    front_end = sys.spawn(http_front_end, std::move(context));
    consume_messages();
  }

  http_front_end_state& state() {
    using pointer = http_front_end_actor::stateful_pointer<http_front_end_state>;
    return deref<std::remove_pointer_t<pointer>>(front_end).state;
  }

  std::vector<http_client_actor> clients() {
    std::vector<http_client_actor> all;
    for (const auto& [address, client] : state().all) {
      all.push_back(client);
    }
    return all;
  }

  answer_ptr ask(incoming_request request, std::string principal = "ali") {
    auto answer = std::make_shared<recorded_answer>();
    request.principal = std::move(principal);
    http_requests_to(front_end)(std::move(request), {}, std::make_shared<recording_reply>(answer));
    consume_messages();
    return answer;
  }

  answer_ptr post(const json& message, std::vector<http_field> fields = {},
                  std::string principal = "ali") {
    return ask({"POST", "/mcp", std::move(fields), message.dump(), {}}, std::move(principal));
  }

  static json request(const json& id, const std::string& method, json params = json::object()) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
  }

  answer_ptr initialize(const std::string& principal = "ali", json params = nullptr) {
    if (params.is_null()) {
      params = {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}};
    }
    return post(request(0, "initialize", params), {}, principal);
  }

  /// Opens a session and uses it from now on.
  void open() { session = initialize()->field("Mcp-Session-Id"); }

  std::vector<http_field> in_session(std::vector<http_field> more = {}) {
    more.push_back({"Mcp-Session-Id", session});
    more.push_back({"MCP-Protocol-Version", revision});
    return more;
  }

  answer_ptr legacy(const json& id, const std::string& method, json params = json::object()) {
    return post(request(id, method, std::move(params)), in_session());
  }

  answer_ptr call(const json& id, bool progress = true) {
    json params = {{"name", "run_python"}, {"arguments", {{"code", "1"}}}};
    if (progress) {
      params["_meta"] = {{"progressToken", id}};
    }
    return legacy(id, "tools/call", params);
  }

  answer_ptr get(std::vector<http_field> more = {}) {
    return ask({"GET", "/mcp", in_session(std::move(more)), {}, {}});
  }

  answer_ptr modern(const json& id, const std::string& method, json params = json::object(),
                    const std::string& principal = "ali") {
    auto name = params.value("name", "");
    params["_meta"].update({{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                            {"io.modelcontextprotocol/clientCapabilities", json::object()}});
    std::vector<http_field> fields = {{"MCP-Protocol-Version", "2026-07-28"},
                                      {"Mcp-Method", method}};
    if (!name.empty()) {
      fields.push_back({"Mcp-Name", name});
    }
    return post(request(id, method, std::move(params)), fields, principal);
  }

  answer_ptr modern_call(const json& id, json meta = json::object()) {
    return modern(id, "tools/call",
                  {{"name", "run_python"}, {"arguments", {{"code", "1"}}}, {"_meta", meta}});
  }

  void finish(std::size_t run, const std::string& out) {
    run_answer answer;
    answer.exit_code = 0;
    answer.out = {out, {}, out.size(), 0};
    caf::anon_send((*runs)[run]->actor, end_atom::value, std::move(answer));
    consume_messages();
  }

  void lose(const answer_ptr& answer) {
    answer->gone = true;
    if (answer->told) {
      std::exchange(answer->told, nullptr)();
    }
    consume_messages();
  }

  void pass(seconds time) {
    for (auto left = time; left.count() > 0; left -= seconds{5}) {
      advance_time(seconds{5});
      consume_messages();
    }
  }

  std::shared_ptr<bool> stop() {
    auto stopped = std::make_shared<bool>(false);
    sys.spawn([stopped, to = front_end](caf::event_based_actor* asking) {
      asking->request(to, seconds{60}, stop_atom::value)
          .then([stopped](caf::ok_atom) { *stopped = true; }, [](const caf::error&) {});
    });
    consume_messages();
    return stopped;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<scripted_runs> runs = std::make_shared<scripted_runs>();
  std::shared_ptr<admission_script> admission = std::make_shared<admission_script>();
  session_context scripted;
  http_front_end_actor front_end;
  std::string session;
  std::string revision = "2025-11-25";
};

std::string text_of(const json& response) {
  return response.at("result").at("content").at(0).at("text").get<std::string>();
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(http_front_end_tests, fixture)

CAF_TEST(initialize opens a session whose id the answer gives) {
  auto answer = initialize();
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK_EQUAL(answer->field("Content-Type"), std::string{"application/json"});
  CAF_CHECK(!answer->field("Mcp-Session-Id").empty());
  auto spoken = answer->body()["result"]["protocolVersion"].get<std::string>();
  CAF_CHECK_EQUAL(spoken, std::string{"2025-11-25"});
  session = answer->field("Mcp-Session-Id");
  auto pong = legacy(1, "ping");
  CAF_CHECK_EQUAL(pong->whole.status, 200u);
  CAF_CHECK(pong->field("Mcp-Session-Id").empty());
}

CAF_TEST(an initialize that fails leaves no session) {
  auto answer = initialize("ali", {{"protocolVersion", 5}});
  CAF_CHECK(answer->body().contains("error"));
  CAF_CHECK(answer->field("Mcp-Session-Id").empty());
  CAF_CHECK(state().sessions.empty());
  CAF_CHECK(state().all.empty());
}

CAF_TEST(a session has to be named and known) {
  CAF_CHECK_EQUAL(post(request(1, "ping"))->whole.status, 400u);
  session = "no such session";
  CAF_CHECK_EQUAL(legacy(1, "ping")->whole.status, 404u);
  auto id = legacy(7, "ping")->body()["id"].get<int>();
  CAF_CHECK_EQUAL(id, 7);
}

CAF_TEST(a session of another principal looks like none) {
  open();
  auto foreign = post(request(1, "ping"), in_session(), "eve");
  auto unknown = post(request(1, "ping"), {{"Mcp-Session-Id", "x"}}, "eve");
  CAF_CHECK_EQUAL(foreign->whole.status, 404u);
  CAF_CHECK_EQUAL(foreign->whole.body, unknown->whole.body);
  CAF_CHECK_EQUAL(legacy(2, "ping")->whole.status, 200u);
}

CAF_TEST(DELETE ends a session) {
  open();
  auto running = call(1);
  CAF_CHECK_EQUAL(ask({"DELETE", "/mcp", in_session(), {}, {}})->whole.status, 204u);
  CAF_CHECK_EQUAL(legacy(2, "ping")->whole.status, 404u);
  CAF_CHECK_EQUAL(ask({"DELETE", "/mcp", in_session(), {}, {}})->whole.status, 404u);
  CAF_CHECK((*runs)[0]->cancelled);
  finish(0, "too late");
  CAF_CHECK(running->ended);
  CAF_CHECK(state().all.empty());
}

CAF_TEST(notifications and responses are accepted) {
  open();
  json initialized = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
  auto answer = post(initialized, in_session());
  CAF_CHECK_EQUAL(answer->whole.status, 202u);
  CAF_CHECK(answer->whole.body.empty());
  json response = {{"jsonrpc", "2.0"}, {"id", "x"}, {"result", json::object()}};
  CAF_CHECK_EQUAL(post(response, in_session())->whole.status, 202u);
}

CAF_TEST(a call is answered by a stream that begins at once and ends with the result) {
  open();
  auto answer = call(1);
  CAF_CHECK(answer->begun);
  CAF_CHECK_EQUAL(answer->field("Content-Type"), std::string{"text/event-stream"});
  CAF_CHECK_EQUAL(answer->field("X-Accel-Buffering"), std::string{"no"});
  CAF_CHECK(answer->stream.starts_with("id: 2-0\ndata: \n\n"));
  auto before = answer->events();
  CAF_CHECK_EQUAL(before.back()["method"], "notifications/progress");
  CAF_CHECK(!answer->ended);
  finish(0, "forty-two");
  auto result = answer->events().back();
  CAF_CHECK_EQUAL(result["id"], 1);
  CAF_CHECK(text_of(result).find("forty-two") != std::string::npos);
  CAF_CHECK(answer->ended);
}

CAF_TEST(clients of older revisions get no event without data) {
  open();
  revision = "2025-06-18";
  auto silent = call(1, false);
  CAF_CHECK(!silent->begun);
  finish(0, "plain");
  CAF_CHECK_EQUAL(silent->whole.status, 200u);
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
  CAF_CHECK_EQUAL(again->whole.status, 200u);
  auto events = again->events();
  CAF_REQUIRE_EQUAL(events.size(), 1u);
  CAF_CHECK(text_of(events[0]).find("later") != std::string::npos);
  CAF_CHECK(again->ended);
  // It may get lost once more.
  auto once_more = get({{"Last-Event-ID", last}});
  CAF_CHECK_EQUAL(once_more->events().size(), 1u);
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
  CAF_CHECK_EQUAL(told_again, told_before);
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
  CAF_REQUIRE_EQUAL(again->events().size(), 1u);
  auto id = again->events()[0]["id"].get<int>();
  CAF_CHECK_EQUAL(id, 1);
  auto other_id = other->events().back()["id"].get<int>();
  CAF_CHECK_EQUAL(other_id, 2);
}

CAF_TEST(an event that is not kept can not be come back to) {
  open();
  for (const auto* id : {"", "x", "99-1", "1-0"}) {
    CAF_CHECK_EQUAL(get({{"Last-Event-ID", id}})->whole.status, 400u);
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
  CAF_CHECK_EQUAL(get({{"Last-Event-ID", all[0]->ids().front()}})->whole.status, 400u);
  auto youngest = get({{"Last-Event-ID", all[4]->ids().front()}});
  CAF_CHECK_EQUAL(youngest->events().size(), 1u);
}

CAF_TEST(what belongs to no request goes to the stream that a GET opens) {
  open();
  post({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}, in_session());
  legacy(1, "resources/subscribe", {{"uri", "bulkhead://capabilities"}});
  auto stream = get();
  CAF_CHECK(stream->begun);
  caf::anon_send(front_end, catalogue_atom::value);
  consume_messages();
  auto events = stream->events();
  CAF_REQUIRE_EQUAL(events.size(), 1u);
  CAF_CHECK_EQUAL(events[0]["method"], "notifications/resources/updated");
  // What comes meanwhile waits.
  lose(stream);
  caf::anon_send(front_end, catalogue_atom::value);
  consume_messages();
  auto again = get();
  CAF_CHECK_EQUAL(again->events().size(), 1u);
  CAF_CHECK(!again->ended);
}

CAF_TEST(an id that is in use and too many requests are refused) {
  http_allowance allowance;
  allowance.in_flight = 2;
  start(allowance);
  open();
  auto first = call(1);
  auto same = call(1);
  CAF_CHECK_EQUAL(same->whole.status, 400u);
  call("1");
  auto too_many = call(3);
  CAF_CHECK_EQUAL(too_many->whole.status, 429u);
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
  CAF_CHECK_EQUAL(post(cancelled, in_session())->whole.status, 202u);
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
  CAF_CHECK_EQUAL(legacy(1, "ping")->whole.status, 200u);
  lose(reader);
  pass(seconds{120});
  CAF_CHECK_EQUAL(legacy(2, "ping")->whole.status, 404u);
  CAF_CHECK(state().all.empty());
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
  CAF_CHECK_EQUAL(legacy(1, "ping")->whole.status, 404u);
  session = first;
  CAF_CHECK_EQUAL(legacy(2, "ping")->whole.status, 200u);
  CAF_CHECK(!running->ended);
  // Another principal has its own allowance.
  CAF_CHECK_EQUAL(initialize("eve")->whole.status, 200u);
}

CAF_TEST(sessions that are all at work make no room) {
  http_allowance allowance;
  allowance.sessions = 1;
  start(allowance);
  open();
  call(1);
  auto refused = initialize();
  CAF_CHECK_EQUAL(refused->whole.status, 503u);
  CAF_CHECK(!refused->field("Retry-After").empty());
}

CAF_TEST(a modern request needs no session) {
  auto answer = modern("d", "server/discover");
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK_EQUAL(answer->body()["id"], "d");
  CAF_CHECK(answer->body()["result"].contains("supportedVersions"));
  CAF_CHECK(answer->field("Mcp-Session-Id").empty());
  auto unknown = modern(2, "ping");
  CAF_CHECK_EQUAL(unknown->whole.status, 404u);
  CAF_CHECK_EQUAL(unknown->body()["id"], 2);
}

CAF_TEST(a modern client may not GET or DELETE) {
  for (const auto* method : {"GET", "DELETE"}) {
    auto answer = ask({method, "/mcp", {{"MCP-Protocol-Version", "2026-07-28"}}, {}, {}});
    CAF_CHECK_EQUAL(answer->whole.status, 405u);
    CAF_CHECK_EQUAL(answer->field("Allow"), std::string{"POST"});
  }
}

CAF_TEST(modern clients may use the same ids at once) {
  auto one = modern_call(1);
  auto other = modern_call(1);
  finish(1, "the other");
  finish(0, "the one");
  CAF_CHECK_EQUAL(one->body()["id"], 1);
  CAF_CHECK(text_of(one->body()).find("the one") != std::string::npos);
  CAF_CHECK(text_of(other->body()).find("the other") != std::string::npos);
}

CAF_TEST(progress makes a modern answer a stream without ids) {
  auto answer = modern_call("x", {{"progressToken", 0}});
  CAF_CHECK(answer->begun);
  CAF_CHECK(answer->ids().empty());
  finish(0, "done");
  CAF_CHECK_EQUAL(answer->events().back()["id"], "x");
  CAF_CHECK(answer->ended);
}

CAF_TEST(a modern client that goes away cancels its request alone) {
  auto one = modern_call(1);
  auto other = modern_call(2);
  lose(one);
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(!(*runs)[1]->cancelled);
  finish(1, "goes on");
  CAF_CHECK_EQUAL(other->whole.status, 200u);
}

CAF_TEST(a subscription is named by its clients id) {
  auto answer =
      modern("sub", "subscriptions/listen", {{"notifications", {{"resourcesListChanged", true}}}});
  auto first = answer->events().at(0);
  CAF_CHECK_EQUAL(first["method"], "notifications/subscriptions/acknowledged");
  CAF_CHECK_EQUAL(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
  CAF_CHECK(!answer->ended);
}

CAF_TEST(too many modern requests are refused) {
  http_allowance allowance;
  allowance.modern_in_flight = 1;
  start(allowance);
  modern_call(1);
  CAF_CHECK_EQUAL(modern_call(2)->whole.status, 429u);
  CAF_CHECK_EQUAL(modern(3, "server/discover", json::object(), "eve")->whole.status, 200u);
}

CAF_TEST(a session that fails takes only its own requests along) {
  open();
  auto running = call(1);
  auto fine = modern_call(1);
  using pointer = http_client_actor::stateful_pointer<http_session_state>;
  auto client = state().sessions.at(session).actor;
  auto inner = deref<std::remove_pointer_t<pointer>>(client).state.session;
  caf::anon_send_exit(inner, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(running->ended);
  CAF_CHECK_EQUAL(running->events().back()["error"]["code"], -32603);
  CAF_CHECK_EQUAL(legacy(2, "ping")->whole.status, 404u);
  finish(1, "unharmed");
  CAF_CHECK_EQUAL(fine->whole.status, 200u);
  open();
  CAF_CHECK_EQUAL(legacy(3, "ping")->whole.status, 200u);
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
  CAF_CHECK_EQUAL(initialize()->whole.status, 503u);
  finish(0, "x");
  finish(1, "x");
  CAF_CHECK(*stopped);
  for (const auto& each : {running, reader, calling, listening}) {
    CAF_CHECK(each->answered || each->ended);
    CAF_CHECK(!each->abandoned);
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
