#define CAF_SUITE mcp_session

#include "actors/mcp_session.hpp"

#include <algorithm>
#include <chrono>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using nlohmann::json;
using std::chrono::seconds;

namespace {

const json modern_meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                          {"io.modelcontextprotocol/clientCapabilities", json::object()}};

run_answer success(std::string out) {
  run_answer answer;
  answer.exit_code = 0;
  answer.out = {std::move(out), {}, 0, 0};
  answer.out.total = answer.out.head.size();
  return answer;
}

/// A session with a client, an admission and runs that the test controls.
struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    auto servers = std::make_shared<server_catalogue>();
    servers->servers.resize(2);
    servers->servers[0].name = servers->servers[0].alias = "memory";
    servers->servers[1].name = servers->servers[1].alias = "vault";
    servers->rules.deny = {"vault"};
    context = scripted_context(sys, env, runs, admission, servers);
    out = sys.spawn(recording_front_end, messages);
    session = sys.spawn(bulkhead::mcp_session, context, out);
    consume_messages();
  }

  ~fixture() override {
    for (auto& run : *runs) {
      caf::anon_send_exit(run->actor, caf::exit_reason::user_shutdown);
    }
    // They hold promises, and so themselves.
    caf::anon_send_exit(session, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(context.admission, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(context.sessions(), caf::exit_reason::user_shutdown);
    consume_messages();
  }

  void say_text(std::string text) {
    caf::anon_send(session, message_atom::value, std::move(text));
    consume_messages();
  }

  void say(const json& message) { say_text(message.dump()); }

  void ask(const json& id, const std::string& method, json params = json::object()) {
    say({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  }

  void ask_modern(const json& id, const std::string& method, json params = json::object()) {
    auto meta = modern_meta;
    meta.update(params.value("_meta", json::object()));
    params["_meta"] = meta;
    ask(id, method, std::move(params));
  }

  void initialize(const std::string& revision = "2025-11-25") {
    ask("init", "initialize",
        {{"protocolVersion", revision},
         {"capabilities", json::object()},
         {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
    say({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  }

  void call(const json& id, const std::string& code, json meta = nullptr) {
    json params = {{"name", "run_python"}, {"arguments", {{"code", code}}}};
    if (!meta.is_null()) {
      params["_meta"] = std::move(meta);
    }
    ask(id, "tools/call", std::move(params));
  }

  void cancel(const json& id) {
    say({{"jsonrpc", "2.0"},
         {"method", "notifications/cancelled"},
         {"params", {{"requestId", id}, {"reason", "test"}}}});
  }

  void finish(std::size_t run, run_answer answer) {
    caf::anon_send((*runs)[run]->actor, end_atom::value, std::move(answer));
    consume_messages();
  }

  void pass(seconds time) {
    for (auto left = time; left.count() > 0; --left) {
      advance_time(seconds{1});
      consume_messages();
    }
  }

  /// Asks the session to stop; what it returns becomes true with the answer.
  std::shared_ptr<bool> stop() {
    auto stopped = std::make_shared<bool>(false);
    sys.spawn([stopped, to = session](caf::event_based_actor* asking) {
      asking->request(to, seconds{60}, stop_atom::value)
          .then([stopped](caf::ok_atom) { *stopped = true; }, [](const caf::error&) {});
    });
    consume_messages();
    return stopped;
  }

  /// How many answers came to the request `id`.
  std::size_t answers(const json& id) const {
    return static_cast<std::size_t>(
        std::count_if(messages->begin(), messages->end(),
                      [&](const json& each) { return each.contains("id") && each["id"] == id; }));
  }

  /// The last answer to `id`; null when there is none.
  json answer(const json& id) const {
    for (auto each = messages->rbegin(); each != messages->rend(); ++each) {
      if (each->contains("id") && (*each)["id"] == id) {
        return *each;
      }
    }
    return nullptr;
  }

  /// What the answer to `id` has at a JSON pointer, by value: checks keep references only.
  json answer(const json& id, const std::string& where) const {
    auto found = answer(id);
    json::json_pointer pointer{where};
    return found.contains(pointer) ? found[pointer] : json(nullptr);
  }

  json result(const json& id, const std::string& where = "") const {
    return answer(id, "/result" + where);
  }

  int code(const json& id) const {
    auto found = answer(id);
    return found.contains("error") ? found["error"]["code"].get<int>() : 0;
  }

  std::vector<json> notifications(const std::string& method) const {
    std::vector<json> found;
    for (const auto& each : *messages) {
      if (each.value("method", "") == method) {
        found.push_back(each["params"]);
      }
    }
    return found;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<scripted_runs> runs = std::make_shared<scripted_runs>();
  std::shared_ptr<admission_script> admission = std::make_shared<admission_script>();
  std::shared_ptr<std::vector<json>> messages = std::make_shared<std::vector<json>>();
  session_context context;
  front_end_actor out;
  mcp_session_actor session;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_session_tests, fixture)

CAF_TEST(every legacy revision is echoed and an unknown one gets the latest) {
  for (const auto* revision :
       {"2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    initialize(revision);
    CAF_CHECK_EQUAL(result("init", "/protocolVersion"), json(revision));
  }
  initialize("1987-01-01");
  CAF_CHECK_EQUAL(result("init", "/protocolVersion"), json("2025-11-25"));
}

CAF_TEST(initialize without a version is refused) {
  ask(1, "initialize");
  CAF_CHECK_EQUAL(code(1), -32602);
}

CAF_TEST(ids keep value and type) {
  initialize();
  for (const auto& id : {json(0), json("0"), json("a\"\n"), json(-7), json(9007199254740993)}) {
    ask(id, "ping");
    CAF_CHECK_EQUAL(answer(id, "/result"), json::object());
  }
}

CAF_TEST(lists in the legacy era) {
  initialize();
  ask(1, "tools/list");
  CAF_REQUIRE_EQUAL(result(1)["tools"].size(), 1u);
  CAF_CHECK_EQUAL(result(1, "/tools/0/name"), json("run_python"));
  CAF_CHECK(!result(1).contains("resultType"));
  ask(2, "resources/list");
  CAF_CHECK_EQUAL(result(2, "/resources/0/uri"), json("bulkhead://capabilities"));
  ask(3, "resources/templates/list");
  CAF_CHECK_EQUAL(result(3, "/resourceTemplates").size(), 2u);
  ask(4, "prompts/list");
  CAF_CHECK_EQUAL(result(4, "/prompts"), json::array());
}

CAF_TEST(a cursor that was never given is refused) {
  initialize();
  for (const auto* method : {"tools/list", "resources/list", "prompts/list"}) {
    ask(1, method, {{"cursor", "x"}});
    CAF_CHECK_EQUAL(code(1), -32602);
  }
}

CAF_TEST(a client that just asks is served) {
  ask(0, "tools/list");
  CAF_CHECK_EQUAL(result(0)["tools"].size(), 1u);
  call(1, "print(1)");
  finish(0, success("1\n"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("success"));
}

CAF_TEST(the resource is read in both eras) {
  initialize();
  ask(1, "resources/read", {{"uri", "bulkhead://capabilities"}});
  auto text = result(1, "/contents/0")["text"].get<std::string>();
  CAF_CHECK(text.find("mcp.runtime") != std::string::npos ||
            text.find("runtime") != std::string::npos);
  CAF_CHECK(text.find("`memory`") != std::string::npos);
  CAF_CHECK(text.find("vault") == std::string::npos);
  ask(2, "resources/read", {{"uri", "file:///etc/passwd"}});
  CAF_CHECK_EQUAL(code(2), -32002);
  ask(3, "resources/read");
  CAF_CHECK_EQUAL(code(3), -32602);
  ask_modern(4, "resources/read", {{"uri", "bulkhead://capabilities"}});
  CAF_CHECK_EQUAL(result(4, "/contents/0/text"), json(text));
  CAF_CHECK_EQUAL(result(4, "/cacheScope"), json("private"));
  ask_modern(5, "resources/read", {{"uri", "bulkhead://nothing"}});
  CAF_CHECK_EQUAL(code(5), -32602);
}

CAF_TEST(unknown methods are refused in both eras and unknown notifications ignored) {
  initialize();
  ask(1, "no/such");
  CAF_CHECK_EQUAL(code(1), -32601);
  ask(2, "completion/complete");
  CAF_CHECK_EQUAL(code(2), -32601);
  ask_modern(3, "no/such");
  CAF_CHECK_EQUAL(code(3), -32601);
  auto before = messages->size();
  say({{"jsonrpc", "2.0"}, {"method", "notifications/no/such"}});
  say({{"jsonrpc", "2.0"}, {"id", 9}, {"result", json::object()}});
  CAF_CHECK_EQUAL(messages->size(), before);
}

CAF_TEST(what the modern era removed is unknown there) {
  for (const auto* method : {"ping", "logging/setLevel", "initialize", "resources/subscribe"}) {
    ask_modern(1, method, {{"level", "info"}, {"protocolVersion", "2025-11-25"}});
    CAF_CHECK_EQUAL(code(1), -32601);
  }
}

CAF_TEST(what only the modern era has is unknown in the legacy one) {
  initialize();
  ask(1, "server/discover");
  CAF_CHECK_EQUAL(code(1), -32602);
  ask(2, "subscriptions/listen", {{"notifications", json::object()}});
  CAF_CHECK_EQUAL(code(2), -32602);
}

CAF_TEST(discover and lists in the modern era) {
  ask_modern("d", "server/discover");
  CAF_CHECK_EQUAL(result("d", "/supportedVersions"), json::array({"2026-07-28"}));
  for (const auto* method :
       {"tools/list", "resources/list", "resources/templates/list", "prompts/list"}) {
    ask_modern(1, method);
    CAF_CHECK_EQUAL(result(1, "/resultType"), json("complete"));
    CAF_CHECK(result(1, "/ttlMs").is_number_unsigned());
    // What runs left is their owner's alone.
    bool own = method == std::string{"resources/list"};
    CAF_CHECK_EQUAL(result(1, "/cacheScope"), json(own ? "private" : "public"));
  }
}

CAF_TEST(modern requests are checked one by one) {
  ask_modern(1, "server/discover");
  ask(2, "tools/list");
  CAF_CHECK_EQUAL(code(2), -32602);
  ask(3, "tools/list", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}}}});
  CAF_CHECK_EQUAL(code(3), -32602);
  ask(4, "tools/call",
      {{"_meta",
        {{"io.modelcontextprotocol/protocolVersion", "2030-01-01"},
         {"io.modelcontextprotocol/clientCapabilities", json::object()}}},
       {"name", "run_python"}});
  CAF_CHECK_EQUAL(code(4), -32022);
  CAF_CHECK_EQUAL(answer(4, "/error/data/supported"), json::array({"2026-07-28"}));
  CAF_CHECK_EQUAL(answer(4, "/error/data/requested"), json("2030-01-01"));
  CAF_CHECK(runs->empty());
}

CAF_TEST(a client that probed may still fall back to initialize) {
  ask_modern(1, "server/discover");
  initialize("2025-06-18");
  ask(2, "tools/list");
  CAF_CHECK_EQUAL(result(2)["tools"].size(), 1u);
  ask_modern(3, "tools/list");
  CAF_CHECK_EQUAL(result(3, "/resultType"), json("complete"));
}

CAF_TEST(garbage gets an error and the session goes on) {
  initialize();
  for (const auto* text : {"garbage", "{\"jsonrpc\":\"2.0\"", "\xff\xfe", "{]"}) {
    say_text(text);
    CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32700));
    CAF_CHECK(messages->back()["id"].is_null());
  }
  say_text(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])");
  CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32600));
  CAF_CHECK(messages->back()["error"]["message"].get<std::string>().find("batch") !=
            std::string::npos);
  say_text(R"({"jsonrpc":"1.0","id":5,"method":"ping"})");
  CAF_CHECK_EQUAL(code(5), -32600);
  ask(6, "tools/list", json::array({1}));
  CAF_CHECK_EQUAL(code(6), -32602);
  auto before = messages->size();
  say_text("");
  say_text("  \r");
  CAF_CHECK_EQUAL(messages->size(), before);
  ask(7, "ping");
  CAF_CHECK_EQUAL(answer(7, "/result"), json::object());
}

CAF_TEST(a message that was too long is reported) {
  caf::anon_send(session, refuse_atom::value, error{errc::too_large, "over the limit"});
  consume_messages();
  CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32600));
  CAF_CHECK(messages->back()["id"].is_null());
}

CAF_TEST(a run from call to answer) {
  initialize();
  ask(1, "tools/call",
      {{"name", "run_python"},
       {"arguments", {{"code", "print(1)"}, {"servers", {"memory"}}, {"timeout", 2.5}}}});
  CAF_REQUIRE_EQUAL(runs->size(), 1u);
  const auto& run = *runs->front();
  CAF_CHECK(run.began);
  CAF_CHECK_EQUAL(run.request.code, "print(1)");
  CAF_CHECK_EQUAL(run.request.servers, std::vector<std::string>{"memory"});
  CAF_CHECK_EQUAL(run.request.timeout.count(), 2500);
  CAF_CHECK(!run.request.observer);
  CAF_CHECK_EQUAL(answers(1), 0u);
  finish(0, success("1\n"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/stdout"), json("1\n"));
  CAF_CHECK(!result(1).value("isError", false));
  CAF_CHECK_EQUAL(admission->released, std::vector<std::uint64_t>{1});
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(old revisions get no structured content and the modern era a result type) {
  initialize("2025-03-26");
  call(1, "1");
  finish(0, success("x"));
  CAF_CHECK(!result(1).contains("structuredContent"));
  ask_modern(2, "tools/call", {{"name", "run_python"}, {"arguments", {{"code", "1"}}}});
  finish(1, success("x"));
  CAF_CHECK(result(2).contains("structuredContent"));
  CAF_CHECK_EQUAL(result(2, "/resultType"), json("complete"));
  CAF_CHECK(!result(2).contains("ttlMs"));
}

CAF_TEST(bad arguments are tool errors that name what is wrong) {
  initialize();
  auto refused = [&](json arguments, const std::string& word) {
    ask(1, "tools/call", {{"name", "run_python"}, {"arguments", std::move(arguments)}});
    CAF_CHECK_EQUAL(result(1, "/isError"), json(true));
    CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("validation_error"));
    auto text = result(1, "/content/0")["text"].get<std::string>();
    CAF_CHECK(text.find(word) != std::string::npos);
  };
  refused({{"cod", "1"}}, "did you mean");
  refused({{"code", ""}}, "code is empty");
  refused({{"code", "1"}, {"timeout", 9999}}, "at most 120");
  refused({{"code", "1"}, {"servers", {"memroy"}}}, "did you mean \"memory\"");
  refused({{"code", "1"}, {"servers", {"vault"}}}, "policy");
  ask(2, "tools/call", {{"name", "run_python"}});
  CAF_CHECK_EQUAL(result(2, "/structuredContent/status"), json("validation_error"));
  CAF_CHECK(runs->empty());
  CAF_CHECK(admission->given.empty());
}

CAF_TEST(calls that are no calls of the tool are protocol errors) {
  initialize();
  ask(1, "tools/call", {{"name", "run_ruby"}, {"arguments", json::object()}});
  CAF_CHECK_EQUAL(code(1), -32602);
  ask(2, "tools/call", {{"arguments", json::object()}});
  CAF_CHECK_EQUAL(code(2), -32602);
  ask(3, "tools/call", {{"name", "run_python"}, {"arguments", "print(1)"}});
  CAF_CHECK_EQUAL(code(3), -32602);
  ask(4, "tools/call",
      {{"name", "run_python"},
       {"arguments", {{"code", "1"}}},
       {"_meta", {{"progressToken", 1.5}}}});
  CAF_CHECK_EQUAL(code(4), -32602);
  CAF_CHECK(runs->empty());
}

CAF_TEST(calls overlap and answers come as they are ready) {
  initialize();
  call(0, "a");
  call("0", "b");
  call(2, "c");
  CAF_REQUIRE_EQUAL(runs->size(), 3u);
  finish(2, success("c"));
  finish(0, success("a"));
  CAF_CHECK_EQUAL(result(2, "/structuredContent/stdout"), json("c"));
  CAF_CHECK_EQUAL(result(0, "/structuredContent/stdout"), json("a"));
  CAF_CHECK(answer("0").is_null());
  finish(1, success("b"));
  CAF_CHECK_EQUAL(result("0", "/structuredContent/stdout"), json("b"));
}

CAF_TEST(an id in use is refused and free again after the answer) {
  initialize();
  call(1, "a");
  call(1, "b");
  CAF_CHECK_EQUAL(code(1), -32600);
  CAF_CHECK_EQUAL(runs->size(), 1u);
  ask(1, "ping");
  CAF_CHECK_EQUAL(code(1), -32600);
  finish(0, success("a"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/stdout"), json("a"));
  call(1, "c");
  CAF_CHECK_EQUAL(runs->size(), 2u);
  finish(1, success("c"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/stdout"), json("c"));
}

CAF_TEST(a cancelled run is told and gets no answer) {
  initialize();
  call("a/b", "a");
  call(2, "b");
  // The same id in another spelling.
  say_text(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\/b"}})");
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(!(*runs)[1]->cancelled);
  CAF_CHECK(admission->released.empty());
  run_answer cancelled;
  cancelled.status = run_status::cancelled;
  finish(0, cancelled);
  CAF_CHECK_EQUAL(answers("a/b"), 0u);
  CAF_CHECK_EQUAL(admission->released, std::vector<std::uint64_t>{1});
  finish(1, success("b"));
  CAF_CHECK_EQUAL(answers(2), 1u);
}

CAF_TEST(a run is cancelled while it waits for its turn) {
  admission->places = 1;
  initialize();
  call(1, "a");
  call(2, "b");
  call(3, "c");
  CAF_CHECK_EQUAL(runs->size(), 1u);
  cancel(2);
  CAF_CHECK_EQUAL(env->budget->used(), 1u);
  finish(0, success("a"));
  // The late ticket of the cancelled call goes back, and the next one gets its turn.
  CAF_CHECK_EQUAL(admission->released, (std::vector<std::uint64_t>{1, 2}));
  CAF_REQUIRE_EQUAL(runs->size(), 2u);
  CAF_CHECK_EQUAL((*runs)[1]->request.code, "c");
  CAF_CHECK_EQUAL(answers(2), 0u);
}

CAF_TEST(cancellations of what is not in flight are ignored) {
  initialize();
  auto before = messages->size();
  cancel(7);
  cancel("init");
  say({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}});
  say({{"jsonrpc", "2.0"},
       {"method", "notifications/cancelled"},
       {"params", {{"requestId", json::object()}}}});
  CAF_CHECK_EQUAL(messages->size(), before);
  call(1, "a");
  cancel("1");
  CAF_CHECK(!(*runs)[0]->cancelled);
  finish(0, success("a"));
  cancel(1);
  CAF_CHECK_EQUAL(answers(1), 1u);
}

CAF_TEST(modern calls are cancelled by notification) {
  ask_modern(0, "tools/call", {{"name", "run_python"}, {"arguments", {{"code", "1"}}}});
  cancel(0);
  CAF_CHECK((*runs)[0]->cancelled);
  finish(0, success("late"));
  CAF_CHECK_EQUAL(answers(0), 0u);
}

CAF_TEST(progress increases and ends with the answer) {
  initialize();
  call(1, "a", {{"progressToken", 0}});
  auto& run = *(*runs)[0];
  CAF_REQUIRE(run.request.observer);
  for (const auto* stage : {"booting", "running"}) {
    caf::anon_send(run.request.observer, run_progress{run.request.id, stage});
    consume_messages();
  }
  pass(seconds{11});
  finish(0, success("a"));
  caf::anon_send(run.request.observer, run_progress{run.request.id, "late"});
  pass(seconds{11});
  auto steps = notifications("notifications/progress");
  CAF_REQUIRE_EQUAL(steps.size(), 5u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CAF_CHECK_EQUAL(steps[i]["progressToken"], json(0));
    CAF_CHECK_EQUAL(steps[i]["progress"], json(i + 1));
  }
  CAF_CHECK_EQUAL(steps[0]["message"], json("queued"));
  CAF_CHECK_EQUAL(steps[1]["message"], json("booting"));
  CAF_CHECK_EQUAL(steps[2]["message"], json("running"));
  CAF_CHECK_EQUAL(steps[3]["message"], json("running, 5 s"));
  CAF_CHECK_EQUAL(steps[4]["message"], json("running, 10 s"));
  CAF_CHECK_EQUAL(messages->back()["id"], json(1));
}

CAF_TEST(progress goes to its token alone and not after a cancellation) {
  initialize();
  call(1, "a", {{"progressToken", "tok"}});
  call(2, "b");
  cancel(1);
  caf::anon_send((*runs)[0]->request.observer, run_progress{(*runs)[0]->request.id, "running"});
  pass(seconds{11});
  auto steps = notifications("notifications/progress");
  CAF_REQUIRE_EQUAL(steps.size(), 1u);
  CAF_CHECK_EQUAL(steps[0]["progressToken"], json("tok"));
}

CAF_TEST(logs come only when asked for in the legacy era) {
  initialize();
  call(1, "a");
  finish(0, success("a"));
  CAF_CHECK(notifications("notifications/message").empty());
  ask(2, "logging/setLevel", {{"level", "warning"}});
  CAF_CHECK_EQUAL(result(2), json::object());
  call(3, "a");
  finish(1, success("a"));
  CAF_CHECK(notifications("notifications/message").empty());
  call(4, "a");
  run_answer failed;
  failed.status = run_status::error;
  finish(2, failed);
  CAF_REQUIRE_EQUAL(notifications("notifications/message").size(), 1u);
  auto log = notifications("notifications/message")[0];
  CAF_CHECK_EQUAL(log["level"], json("warning"));
  CAF_CHECK_EQUAL(log["data"]["status"], json("error"));
  ask(5, "logging/setLevel", {{"level", "loud"}});
  CAF_CHECK_EQUAL(code(5), -32602);
}

CAF_TEST(logs of the modern era are per request) {
  auto call_with = [&](int id, json meta) {
    ask_modern(
        id, "tools/call",
        {{"name", "run_python"}, {"arguments", {{"code", "1"}}}, {"_meta", std::move(meta)}});
  };
  call_with(1, json::object());
  call_with(2, {{"io.modelcontextprotocol/logLevel", "info"}});
  finish(0, success("a"));
  CAF_CHECK(notifications("notifications/message").empty());
  finish(1, success("a"));
  CAF_CHECK_EQUAL(notifications("notifications/message").size(), 1u);
  CAF_CHECK_EQUAL(messages->back()["id"], json(2));
}

CAF_TEST(overload is told as a tool error) {
  admission->overloaded = true;
  initialize();
  call(1, "a");
  CAF_CHECK_EQUAL(result(1, "/isError"), json(true));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("unavailable"));
  CAF_CHECK(result(1, "/content/0")["text"].get<std::string>().find("try again") !=
            std::string::npos);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(an admission that does not answer is not waited for beyond the deadline) {
  admission->places = 0;
  initialize();
  call(1, "a");
  CAF_REQUIRE_EQUAL(admission->deadlines.size(), 1u);
  pass(seconds{30});
  CAF_CHECK_EQUAL(answers(1), 0u);
  pass(seconds{2});
  CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("unavailable"));
}

CAF_TEST(the memory budget bounds code that waits) {
  env->budget = std::make_shared<memory_budget>(1000);
  session = sys.spawn(bulkhead::mcp_session, context, out);
  admission->places = 0;
  call(1, std::string(600, '#'));
  call(2, std::string(600, '#'));
  CAF_CHECK_EQUAL(answers(1), 0u);
  CAF_CHECK_EQUAL(result(2, "/structuredContent/status"), json("unavailable"));
  cancel(1);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(a run whose actor dies is answered) {
  initialize();
  call(1, "a");
  caf::anon_send_exit((*runs)[0]->actor, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK_EQUAL(result(1, "/isError"), json(true));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("error"));
  CAF_CHECK_EQUAL(answers(1), 1u);
  CAF_CHECK_EQUAL(admission->released, std::vector<std::uint64_t>{1});
}

CAF_TEST(a run that never answers is given up) {
  initialize();
  call(1, "a");
  pass(seconds{30 + 180 + 2});
  CAF_CHECK_EQUAL(result(1, "/isError"), json(true));
  CAF_CHECK_EQUAL(admission->released, std::vector<std::uint64_t>{1});
}

CAF_TEST(subscriptions are acknowledged and closed at the end) {
  ask_modern("s", "subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
  auto acks = notifications("notifications/subscriptions/acknowledged");
  CAF_REQUIRE_EQUAL(acks.size(), 1u);
  CAF_CHECK_EQUAL(acks[0]["_meta"]["io.modelcontextprotocol/subscriptionId"], json("s"));
  CAF_CHECK_EQUAL(acks[0]["notifications"], json::object());
  CAF_CHECK_EQUAL(answers("s"), 0u);
  ask_modern("s", "tools/list");
  CAF_CHECK_EQUAL(code("s"), -32600);
  ask_modern(2, "subscriptions/listen", {{"notifications", json::object()}});
  cancel(2);
  ask_modern(3, "subscriptions/listen");
  CAF_CHECK_EQUAL(code(3), -32602);
  auto stopped = stop();
  CAF_CHECK(*stopped);
  CAF_CHECK_EQUAL(result("s", "/resultType"), json("complete"));
  CAF_CHECK_EQUAL(result("s", "/_meta/io.modelcontextprotocol~1subscriptionId"), json("s"));
  CAF_CHECK_EQUAL(answers(2), 0u);
}

CAF_TEST(there is a bound on subscriptions) {
  for (int i = 0; i < 65; ++i) {
    ask_modern(i, "subscriptions/listen", {{"notifications", json::object()}});
  }
  CAF_CHECK_EQUAL(notifications("notifications/subscriptions/acknowledged").size(), 64u);
  CAF_CHECK_EQUAL(code(64), -32603);
}

CAF_TEST(stopping an idle session is answered at once and ends it) {
  initialize();
  CAF_CHECK(*stop());
  auto before = messages->size();
  ask(1, "ping");
  CAF_CHECK_EQUAL(messages->size(), before);
}

CAF_TEST(stopping cancels all runs and waits for them) {
  admission->places = 2;
  initialize();
  call(1, "a");
  call(2, "b");
  call(3, "c");
  auto stopped = stop();
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK((*runs)[1]->cancelled);
  CAF_CHECK(!*stopped);
  finish(0, success("a"));
  CAF_CHECK(!*stopped);
  finish(1, success("b"));
  CAF_CHECK(*stopped);
  CAF_CHECK_EQUAL(runs->size(), 2u);
  for (int id : {1, 2, 3}) {
    CAF_CHECK_EQUAL(answers(id), 0u);
  }
}

CAF_TEST(runs that do not end hold a stop up for a bounded time only) {
  initialize();
  call(1, "a", {{"progressToken", 1}});
  auto stopped = stop();
  auto again = stop();
  pass(seconds{9});
  CAF_CHECK(!*stopped);
  pass(seconds{2});
  CAF_CHECK(*stopped);
  CAF_CHECK(*again);
}

CAF_TEST(a stopping session takes no more requests) {
  initialize();
  call(1, "a");
  stop();
  ask(2, "ping");
  CAF_CHECK(answer(2).is_null());
}

CAF_TEST_FIXTURE_SCOPE_END()
