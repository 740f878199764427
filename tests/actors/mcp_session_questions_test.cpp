#define CAF_SUITE mcp_session_questions

#include "actors/errors.hpp"
#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const json everything = {{"elicitation", {{"form", json::object()}, {"url", json::object()}}},
                         {"sampling", {{"tools", json::object()}}},
                         {"roots", json::object()}};
const json form = {{"message", "Name?"},
                   {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}};
const json accepted = {{"action", "accept"}, {"content", {{"name", "Ada"}}}};
const json sampled = {
    {"role", "assistant"}, {"content", {{"type", "text"}, {"text", "Paris"}}}, {"model", "m"}};

/// What became of a question.
struct outcome {
  bool done = false;
  json result;
  error reason;
};

struct fixture : session_fixture {
  fixture() { capabilities = everything; }

  /// Asks as a run does; what it returns is filled in with the answer.
  std::shared_ptr<outcome> question(std::size_t run, const std::string& method, const json& params,
                                    seconds patience = seconds{25}, const std::string& key = {}) {
    auto became = std::make_shared<outcome>();
    client_question asked{(*runs)[run]->request.id,
                          "memory",
                          method,
                          params.dump(),
                          deadline::at(sched.clock().now() + patience),
                          key};
    sys.spawn([became, to = session, asked](caf::event_based_actor* self) {
      self->request(to, seconds{600}, asked)
          .then(
              [became](const std::string& result) {
                became->done = true;
                became->result = json::parse(result);
              },
              [became](const caf::error& reason) {
                became->done = true;
                became->reason = from_caf(reason, "ask");
              });
    });
    consume_messages();
    return became;
  }

  auto elicit(std::size_t run = 0, seconds patience = seconds{25}) {
    return question(run, "elicitation/create", form, patience);
  }

  /// The requests that the client got.
  std::vector<json> requests() const {
    std::vector<json> found;
    std::copy_if(messages->begin(), messages->end(), std::back_inserter(found),
                 [](const json& each) { return each.contains("method") && each.contains("id"); });
    return found;
  }

  void reply(const json& request, const json& result) {
    say({{"jsonrpc", "2.0"}, {"id", request["id"]}, {"result", result}});
  }

  void call_modern(const json& id, json more = json::object(), const std::string& code = "1") {
    json params = {{"name", "run_python"}, {"arguments", {{"code", code}}}};
    params.update(more);
    ask_modern(id, "tools/call", std::move(params));
  }

  /// The time in which questions are put together.
  void gather() {
    advance_time(std::chrono::milliseconds{20});
    consume_messages();
  }

  std::string state(const json& id) { return result(id, "/requestState").get<std::string>(); }
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_session_questions_tests, fixture)

CAF_TEST(a legacy client is asked by a request that belongs to its own) {
  initialize();
  call(7, "a");
  CAF_CHECK((*runs)[0]->request.observer);
  auto became = elicit();
  CAF_REQUIRE_EQUAL(requests().size(), 1u);
  auto request = requests()[0];
  CAF_CHECK_EQUAL(request["method"], json("elicitation/create"));
  CAF_CHECK_EQUAL(request["params"]["message"], json("MCP server \"memory\" asks: Name?"));
  CAF_CHECK_EQUAL(request["params"]["requestedSchema"], form["requestedSchema"]);
  CAF_CHECK_EQUAL(written->requests.back(), json(7));
  CAF_CHECK(!became->done);
  reply(request, accepted);
  CAF_CHECK_EQUAL(became->result, accepted);
  // Another answer to it finds nobody.
  auto before = messages->size();
  reply(request, accepted);
  CAF_CHECK_EQUAL(messages->size(), before);
  finish(0, success("a"));
  CAF_CHECK_EQUAL(result(7, "/structuredContent/stdout"), json("a"));
  CAF_CHECK_EQUAL(written->requests.back(), json(7));
}

CAF_TEST(answers find their questions whatever their order) {
  initialize();
  call(1, "a");
  call(2, "b");
  auto first = elicit(0);
  auto second =
      question(1, "sampling/createMessage", {{"messages", json::array()}, {"maxTokens", 5}});
  auto third = question(0, "roots/list", json::object());
  CAF_REQUIRE_EQUAL(requests().size(), 3u);
  CAF_CHECK_EQUAL(written->requests[written->requests.size() - 2], json(2));
  reply(requests()[2], {{"roots", json::array()}});
  reply(requests()[1], sampled);
  reply(requests()[0], {{"action", "decline"}});
  CAF_CHECK_EQUAL(first->result, json({{"action", "decline"}}));
  CAF_CHECK_EQUAL(second->result, sampled);
  CAF_CHECK_EQUAL(third->result, json({{"roots", json::array()}}));
}

CAF_TEST(only what a client declares is asked of it) {
  auto refused = [&](const std::string& method, const json& params) {
    auto became = question(runs->size() - 1, method, params);
    gather();
    return became->done && became->reason.code == errc::unavailable;
  };
  const json url = {{"mode", "url"}, {"message", "m"}, {"url", "https://e.org"}};
  const json sampling = {{"messages", json::array()}, {"maxTokens", 5}};
  json with_tools = sampling;
  with_tools["tools"] = json::array();
  capabilities = {{"elicitation", json::object()}, {"sampling", json::object()}};
  initialize();
  call(1, "a");
  CAF_CHECK(!refused("elicitation/create", form));
  CAF_CHECK(refused("elicitation/create", url));
  CAF_CHECK(!refused("sampling/createMessage", sampling));
  CAF_CHECK(refused("sampling/createMessage", with_tools));
  CAF_CHECK(refused("roots/list", json::object()));
  CAF_CHECK(refused("tasks/list", json::object()));
  // Before 2025-06-18 nobody knew of elicitation.
  initialize("2025-03-26");
  call(2, "b");
  CAF_CHECK(refused("elicitation/create", form));
  CAF_CHECK(!refused("sampling/createMessage", sampling));
  capabilities = {{"elicitation", {{"url", json::object()}}}};
  call_modern(3);
  CAF_CHECK(refused("elicitation/create", form));
  CAF_CHECK(!refused("elicitation/create", url));
}

CAF_TEST(a client that can be asked nothing has no observer) {
  capabilities = json::object();
  initialize();
  call(1, "a");
  CAF_CHECK(!(*runs)[0]->request.observer);
  CAF_CHECK(elicit()->reason.code == errc::unavailable);
}

CAF_TEST(upstream servers can learn what the client can be asked) {
  CAF_CHECK(env->client->get() == client_abilities{});
  capabilities = {{"sampling", json::object()}};
  initialize();
  CAF_CHECK(env->client->get().sampling);
  CAF_CHECK(!env->client->get().elicitation_form);
  capabilities = {{"elicitation", json::object()}};
  call_modern(1);
  CAF_CHECK(env->client->get().elicitation_form);
  context.only_client = false;
  env->client->set({});
  begin_session();
  initialize();
  CAF_CHECK(env->client->get() == client_abilities{});
}

CAF_TEST(a client may refuse and may answer nonsense) {
  initialize();
  call(1, "a");
  auto refused = [&](int code) {
    auto became = elicit();
    say({{"jsonrpc", "2.0"},
         {"id", requests().back()["id"]},
         {"error", {{"code", code}, {"message", "User said no"}}}});
    return became;
  };
  auto denied = refused(-1);
  CAF_CHECK(denied->reason.code == errc::denied);
  CAF_CHECK(denied->reason.message.find("User said no") != std::string::npos);
  CAF_CHECK(refused(-32601)->reason.code == errc::unavailable);
  auto nonsense = elicit();
  reply(requests().back(), {{"action", "maybe"}});
  CAF_CHECK(nonsense->reason.code == errc::malformed);
}

CAF_TEST(a question that no one answers ends at its deadline and is withdrawn) {
  initialize();
  call(1, "a");
  auto became = elicit(0, seconds{5});
  pass(seconds{4});
  CAF_CHECK(!became->done);
  pass(seconds{2});
  CAF_CHECK(became->reason.code == errc::timeout);
  auto cancelled = notifications("notifications/cancelled");
  CAF_REQUIRE_EQUAL(cancelled.size(), 1u);
  auto asked = requests()[0];
  CAF_CHECK_EQUAL(cancelled[0]["requestId"], asked["id"]);
  reply(asked, accepted);
  finish(0, success("went on"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/stdout"), json("went on"));
}

CAF_TEST(questions end with their run) {
  initialize();
  call(1, "a");
  call(2, "b");
  auto first = elicit(0);
  auto second = elicit(1);
  cancel(1);
  CAF_CHECK(first->reason.code == errc::cancelled);
  CAF_CHECK_EQUAL(notifications("notifications/cancelled").size(), 1u);
  CAF_CHECK(elicit(0)->reason.code == errc::cancelled);
  finish(1, success("b"));
  CAF_CHECK(second->reason.code == errc::closed);
  CAF_CHECK_EQUAL(notifications("notifications/cancelled").size(), 2u);
  CAF_CHECK(elicit(1)->reason.code == errc::closed);
}

CAF_TEST(there is a bound on questions and on what they hold) {
  initialize();
  call(1, "a");
  for (int i = 0; i < 32; ++i) {
    elicit();
  }
  CAF_CHECK_EQUAL(requests().size(), 32u);
  CAF_CHECK(elicit()->reason.code == errc::overloaded);
  finish(0, success("a"));
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(a modern client is asked by a result and comes back) {
  call_modern("a");
  auto became = elicit();
  CAF_CHECK_EQUAL(answers("a"), 0u);
  gather();
  CAF_CHECK_EQUAL(result("a", "/resultType"), json("input_required"));
  CAF_CHECK(result("a", "/_meta").contains("io.modelcontextprotocol/serverInfo"));
  auto asked = result("a", "/inputRequests/elicitation-1");
  CAF_CHECK_EQUAL(asked["method"], json("elicitation/create"));
  CAF_CHECK_EQUAL(asked["params"]["message"], json("MCP server \"memory\" asks: Name?"));
  CAF_CHECK(requests().empty());
  CAF_CHECK(!(*runs)[0]->cancelled);
  call_modern("b", {{"requestState", state("a")},
                    {"inputResponses", {{"elicitation-1", accepted}, {"more", accepted}}}});
  CAF_CHECK_EQUAL(became->result, accepted);
  CAF_CHECK_EQUAL(runs->size(), 1u);
  CAF_CHECK_EQUAL(answers("b"), 0u);
  finish(0, success("x"));
  CAF_CHECK_EQUAL(result("b", "/resultType"), json("complete"));
  CAF_CHECK_EQUAL(result("b", "/structuredContent/stdout"), json("x"));
  CAF_CHECK_EQUAL(answers("a"), 1u);
  CAF_CHECK_EQUAL(written->requests.back(), json("b"));
}

CAF_TEST(questions that come together are put together and others wait for their turn) {
  call_modern(1);
  auto first = elicit();
  auto second =
      question(0, "sampling/createMessage", {{"messages", json::array()}, {"maxTokens", 5}});
  gather();
  CAF_CHECK_EQUAL(result(1, "/inputRequests").size(), 2u);
  auto third = elicit();
  gather();
  CAF_CHECK_EQUAL(answers(1), 1u);
  call_modern(2, {{"requestState", state(1)},
                  {"inputResponses", {{"elicitation-1", accepted}, {"sampling-2", sampled}}}});
  CAF_CHECK_EQUAL(second->result, sampled);
  gather();
  CAF_CHECK_EQUAL(result(2, "/inputRequests").size(), 1u);
  CAF_CHECK(state(1) != state(2));
  call_modern(3, {{"requestState", state(2)}, {"inputResponses", {{"elicitation-3", accepted}}}});
  CAF_CHECK(first->done && third->done);
  finish(0, success("x"));
  CAF_CHECK_EQUAL(result(3, "/resultType"), json("complete"));
}

CAF_TEST(what a client leaves unanswered is asked again) {
  call_modern(1);
  auto became = elicit();
  gather();
  call_modern(2, {{"requestState", state(1)}, {"inputResponses", {{"wrong", accepted}}}});
  gather();
  CAF_CHECK_EQUAL(result(2, "/resultType"), json("input_required"));
  call_modern(3, {{"requestState", state(2)}, {"inputResponses", {{"elicitation-1", accepted}}}});
  CAF_CHECK_EQUAL(became->result, accepted);
}

CAF_TEST(a question with a name of its own may have been answered beforehand) {
  call_modern(1, {{"inputResponses", {{"name", accepted}, {"elicitation-1", accepted}}}});
  auto named = question(0, "elicitation/create", form, seconds{25}, "name");
  CAF_CHECK_EQUAL(named->result, accepted);
  auto again = question(0, "elicitation/create", form, seconds{25}, "name");
  auto nameless = elicit();
  CAF_CHECK(!again->done);
  CAF_CHECK(!nameless->done);
  gather();
  CAF_CHECK(result(1, "/inputRequests").contains("name"));
  CAF_CHECK(result(1, "/inputRequests").contains("elicitation-1"));
}

CAF_TEST(a state is good once and for its own call only) {
  call_modern(1);
  elicit();
  gather();
  auto given = state(1);
  const json answered = {{"elicitation-1", accepted}};
  auto refused = [&](const std::string& with, const std::string& code = "1") {
    call_modern(9, {{"requestState", with}, {"inputResponses", answered}}, code);
    auto yes = this->code(9) == -32602;
    messages->clear();
    return yes;
  };
  CAF_CHECK(refused(given + "-TAMPERED"));
  CAF_CHECK(refused("0123456789abcdef0123456789abcdef"));
  CAF_CHECK(refused(given, "another_call()"));
  call_modern(9, {{"requestState", 7}});
  CAF_CHECK_EQUAL(code(9), -32602);
  // Another client has a session of its own.
  auto mine = session;
  begin_session();
  CAF_CHECK(refused(given));
  session = mine;
  CAF_CHECK_EQUAL(runs->size(), 1u);
  call_modern(2, {{"requestState", given}, {"inputResponses", answered}});
  CAF_CHECK_EQUAL(answers(2), 0u);
  CAF_CHECK(refused(given));
  finish(0, success("x"));
  CAF_CHECK_EQUAL(result(2, "/resultType"), json("complete"));
}

CAF_TEST(answers that are none are refused and the state stays good) {
  call_modern(1);
  auto became = elicit();
  gather();
  auto given = state(1);
  for (const auto& bad : {json(12), json::array(), json({{"elicitation-1", 12345}}),
                          json({{"elicitation-1", {{"action", "perhaps"}}}})}) {
    call_modern(2, {{"requestState", given}, {"inputResponses", bad}});
    CAF_CHECK_EQUAL(code(2), -32602);
  }
  CAF_CHECK(!became->done);
  call_modern(3, {{"requestState", given}, {"inputResponses", {{"elicitation-1", accepted}}}});
  CAF_CHECK_EQUAL(became->result, accepted);
}

CAF_TEST(the same arguments in another spelling are the same call) {
  call_modern(1);
  elicit();
  gather();
  json params = {{"_meta", modern_meta}, {"requestState", state(1)}, {"name", "run_python"}};
  auto text = params.dump();
  text.pop_back();
  say_text(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":)" + text +
           R"(,"arguments":{ "code" : "\u0031" }}})");
  CAF_CHECK_EQUAL(code(2), 0);
  CAF_CHECK_EQUAL(answers(2), 0u);
  // It declares nothing any more, so that the question can't be put again.
  gather();
  CAF_CHECK_EQUAL(answers(2), 0u);
  finish(0, success("x"));
  CAF_CHECK_EQUAL(result(2, "/resultType"), json("complete"));
}

CAF_TEST(a run whose client does not come back goes on and its answer is kept for a while) {
  call_modern(1);
  auto became = elicit(0, seconds{5});
  gather();
  pass(seconds{6});
  CAF_CHECK(became->reason.code == errc::timeout);
  finish(0, success("late"));
  CAF_CHECK_EQUAL(answers(1), 1u);
  CAF_CHECK_EQUAL(admission->released.size(), 1u);
  auto given = state(1);
  call_modern(2, {{"requestState", given}, {"inputResponses", {{"elicitation-1", accepted}}}},
              "other()");
  CAF_CHECK_EQUAL(code(2), -32602);
  call_modern(3, {{"requestState", given}, {"inputResponses", {{"elicitation-1", accepted}}}});
  CAF_CHECK_EQUAL(result(3, "/structuredContent/stdout"), json("late"));
  call_modern(4, {{"requestState", given}});
  CAF_CHECK_EQUAL(code(4), -32602);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(a kept answer is dropped in time) {
  call_modern(1);
  elicit(0, seconds{5});
  gather();
  finish(0, success("late"));
  CAF_CHECK(env->budget->used() > 0);
  pass(seconds{121});
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  call_modern(2, {{"requestState", state(1)}});
  CAF_CHECK_EQUAL(code(2), -32602);
}

CAF_TEST(a modern run is cancelled while it is asked and when its client came back) {
  call_modern(1);
  auto became = elicit();
  cancel(1);
  CAF_CHECK(became->reason.code == errc::cancelled);
  gather();
  CAF_CHECK_EQUAL(answers(1), 0u);
  call_modern(2);
  auto second = elicit(1);
  gather();
  call_modern(3, {{"requestState", state(2)}, {"inputResponses", {{"elicitation-1", accepted}}}});
  // The first request is answered, so that its id means nothing.
  cancel(2);
  CAF_CHECK(!(*runs)[1]->cancelled);
  cancel(3);
  CAF_CHECK((*runs)[1]->cancelled);
  finish(1, success("x"));
  CAF_CHECK_EQUAL(answers(3), 0u);
}

CAF_TEST(progress goes on under the new request) {
  auto with_token = [](const std::string& token) {
    return json{{"_meta", {{"progressToken", token}}}};
  };
  call_modern(1, with_token("first"));
  elicit();
  gather();
  auto before = messages->size();
  caf::anon_send((*runs)[0]->request.observer, run_progress{(*runs)[0]->request.id, "waits"});
  pass(seconds{6});
  CAF_CHECK_EQUAL(messages->size(), before);
  auto back = with_token("second");
  back.update({{"requestState", state(1)}, {"inputResponses", {{"elicitation-1", accepted}}}});
  call_modern(2, back);
  pass(seconds{6});
  CAF_REQUIRE_EQUAL(messages->size(), before + 1);
  CAF_CHECK_EQUAL(messages->back()["params"]["progressToken"], json("second"));
  CAF_CHECK_EQUAL(written->requests.back(), json(2));
}

CAF_TEST(a session that stops ends its questions) {
  initialize();
  call(1, "a");
  auto became = elicit();
  stop();
  CAF_CHECK(became->reason.code == errc::cancelled);
  CAF_CHECK(elicit()->done);
}

CAF_TEST(an_answer_given_before_the_question_is_none_to_bulkheads_own) {
  call_modern(
      "a", {{"inputResponses", {{"", accepted}, {"elicitation-1", accepted}, {"mine", accepted}}}});
  auto own = question(0, "elicitation/create", form);
  auto servers = question(0, "elicitation/create", form, seconds{25}, "mine");
  CAF_CHECK(!own->done);
  CAF_CHECK(servers->done && servers->result == accepted);
  gather();
  auto asked = result("a", "/inputRequests");
  CAF_CHECK_EQUAL(asked.size(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
