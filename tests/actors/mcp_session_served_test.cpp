#define CAF_SUITE mcp_session_served

#include "protocol/conformance_fixtures.hpp"
#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// A session that serves the conformance suite's things besides its own.
struct fixture : session_fixture {
  fixture() {
    auto with_more = context;
    with_more.served = conformance_fixtures();
    with_more.break_off = [this](const std::string& request) { broken_off.push_back(request); };
    own = session;
    session = sys.spawn(bulkhead::mcp_session, with_more, out);
    sessions.push_back(session);
    consume_messages();
    capabilities = {
        {"sampling", json::object()}, {"elicitation", json::object()}, {"roots", json::object()}};
  }

  ~fixture() override {
    // One of them tells `broken_off`, which ends before the base does.
    for (const auto& each : sessions) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    }
    consume_messages();
  }

  void use(const json& id, const std::string& name, json more = json::object()) {
    more["name"] = name;
    ask(id, "tools/call", std::move(more));
  }

  void use_modern(const json& id, const std::string& name, json more = json::object()) {
    more["name"] = name;
    more["arguments"] = json::object();
    ask_modern(id, "tools/call", std::move(more));
  }

  std::string text(const json& id) {
    auto found = result(id, "/content/0/text");
    return found.is_string() ? found.get<std::string>() : std::string{};
  }

  mcp_session_actor own;
  std::vector<std::string> broken_off;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_session_served_tests, fixture)

CAF_TEST(nothing of it is there in a session as production has it) {
  session = own;
  use_modern(1, "test_simple_text");
  CAF_CHECK(code(1) == -32602);
  ask_modern(2, "tools/list");
  CAF_CHECK(result(2, "/tools").size() == 1u);
  ask_modern(3, "resources/read", {{"uri", "test://static-text"}});
  CAF_CHECK(code(3) == -32602);
  ask_modern(4, "prompts/get", {{"name", "test_simple_prompt"}});
  CAF_CHECK(code(4) == -32602);
}

CAF_TEST(served tools stand beside the sessions own) {
  ask_modern(1, "tools/list");
  auto tools = result(1, "/tools").dump();
  CAF_CHECK(tools.find("test_simple_text") != std::string::npos);
  CAF_CHECK(tools.find("run_python") != std::string::npos);
  use_modern(2, "test_simple_text");
  CAF_CHECK(text(2) == "This is a simple text response for testing.");
  CAF_CHECK(result(2, "/resultType") == "complete");
}

CAF_TEST(progress is told in its steps) {
  initialize();
  use(1, "test_tool_with_progress", {{"_meta", {{"progressToken", "t"}}}});
  CAF_CHECK(answer(1).is_null());
  pass(seconds{5});
  auto steps = notifications("notifications/progress");
  CAF_REQUIRE(steps.size() == 3u);
  CAF_CHECK(steps[1]["progress"] == 50);
  CAF_CHECK(!answer(1).is_null());
}

CAF_TEST(a legacy client is asked by requests) {
  initialize();
  use(1, "test_elicitation", {{"arguments", {{"message", "who?"}}}});
  auto asked = messages->back();
  CAF_CHECK(asked["method"] == "elicitation/create");
  CAF_CHECK(asked["params"]["message"] == "who?");
  say({{"jsonrpc", "2.0"},
       {"id", asked["id"]},
       {"result", {{"action", "accept"}, {"content", {{"response", "me"}}}}}});
  CAF_CHECK(text(1).find("\"me\"") != std::string::npos);
}

CAF_TEST(a modern client is asked by results and comes back with all answers) {
  use_modern(1, "test_input_required_result_multiple_inputs");
  pass(seconds{5});
  CAF_CHECK(result(1, "/resultType") == "input_required");
  auto requests = result(1, "/inputRequests");
  CAF_CHECK(requests.size() == 3u);
  json answers = {
      {"user_name", {{"action", "accept"}, {"content", {{"name", "Alice"}}}}},
      {"greeting",
       {{"role", "assistant"}, {"model", "m"}, {"content", {{"type", "text"}, {"text", "hello"}}}}},
      {"client_roots", {{"roots", json::array()}}}};
  auto state = result(1, "/requestState");
  use_modern(2, "test_input_required_result_multiple_inputs",
             {{"requestState", state}, {"inputResponses", answers}});
  CAF_CHECK(text(2).find("Alice") != std::string::npos);
}

CAF_TEST(tampered state is refused) {
  use_modern(1, "test_input_required_result_tampered_state");
  pass(seconds{5});
  auto state = result(1, "/requestState").get<std::string>() + "-TAMPERED";
  use_modern(2, "test_input_required_result_tampered_state",
             {{"requestState", state}, {"inputResponses", {{"confirm", {{"action", "accept"}}}}}});
  CAF_CHECK(code(2) == -32602);
}

CAF_TEST(a cancelled call says nothing more) {
  initialize();
  use(1, "test_tool_with_progress");
  cancel(1);
  pass(seconds{5});
  CAF_CHECK(answer(1).is_null());
  auto stopped = stop();
  CAF_CHECK(*stopped);
}

CAF_TEST(a client is sent away to come back) {
  initialize();
  use("r", "test_reconnection");
  CAF_REQUIRE(broken_off.size() == 1u);
  CAF_CHECK(broken_off[0] == "\"r\"");
  pass(seconds{5});
  CAF_CHECK(!answer("r").is_null());
}

CAF_TEST(a refusal ends a call with its code) {
  capabilities = json::object();
  use_modern(1, "test_missing_capability");
  CAF_CHECK(code(1) == -32021);
  CAF_CHECK(answer(1)["error"]["data"]["requiredCapabilities"].contains("sampling"));
}

CAF_TEST(lists that change are told to those who subscribed) {
  ask_modern("s", "subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
  use_modern(1, "test_trigger_prompt_change");
  CAF_CHECK(notifications("notifications/prompts/list_changed").empty());
  use_modern(2, "test_trigger_tool_change");
  CAF_CHECK(notifications("notifications/tools/list_changed").size() == 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
