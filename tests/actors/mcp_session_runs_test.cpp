#define CAF_SUITE mcp_session_runs

#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(mcp_session_runs_tests, session_fixture)

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
  begin_session();
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
  pass(seconds{30 + 180 + 2} + env->bounds.question_time);
  CAF_CHECK_EQUAL(result(1, "/isError"), json(true));
  CAF_CHECK_EQUAL(admission->released, std::vector<std::uint64_t>{1});
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
