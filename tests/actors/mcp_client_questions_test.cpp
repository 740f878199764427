#define CAF_SUITE mcp_client_questions

#include <sstream>

#include <spdlog/sinks/ostream_sink.h>

#include "tests/support/mcp_client_fixture.hpp"

/// What a server asks and tells in the middle of a call.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// Whoever makes calls; what it is asked waits for the test.
struct caller_log {
  std::vector<tool_progress> progress;
  std::vector<server_question> questions;
  std::vector<caf::typed_response_promise<std::string>> promises;
  caf::local_actor* self = nullptr;

  void answer(std::size_t which, const std::string& result) {
    self->context(nullptr);
    promises[which].deliver(result);
  }
  void refuse(std::size_t which, errc code, const std::string& why) {
    self->context(nullptr);
    promises[which].deliver(to_caf(code, why));
  }
};

struct caller_state {
  explicit caller_state(tool_caller_actor::pointer) {}
  static inline const char* name = "caller";
};

tool_caller_actor::behavior_type
scripted_caller(tool_caller_actor::stateful_pointer<caller_state> self,
                std::shared_ptr<caller_log> log) {
  log->self = self;
  return {
      [log](const tool_progress& progress) { log->progress.push_back(progress); },
      [self, log](const server_question& question) {
        log->questions.push_back(question);
        log->promises.push_back(self->make_response_promise<std::string>());
        return log->promises.back();
      },
  };
}

struct questions_fixture : client_fixture {
  questions_fixture() {
    first = sys.spawn(scripted_caller, asked);
    second = sys.spawn(scripted_caller, asked_too);
    env->client->set({true, true, true, false, false});
    server["tools/call"] = [this](const auto&, const auto& request) {
      requests.push_back(request);
    };
  }

  ~questions_fixture() override {
    caf::anon_send_exit(client, caf::exit_reason::kill);
    consume_messages();
    asked->promises.clear();
    asked_too->promises.clear();
    caf::anon_send_exit(first, caf::exit_reason::kill);
    caf::anon_send_exit(second, caf::exit_reason::kill);
    consume_messages();
  }

  outcome_ptr<std::string> call_by(const tool_caller_actor& caller, std::string tool = "t",
                                   std::string arguments = "{}",
                                   std::chrono::milliseconds time = 60s) {
    tool_call what{++last_call, std::move(tool), std::move(arguments), in(time), {}};
    what.caller = caller;
    return ask<std::string>(call_atom::value, what);
  }

  void line(const json& message) {
    script->children.back().line(message.dump());
    consume_messages();
  }

  /// A question of the server; the last line that it got is then the answer, if there is one.
  void question(const json& id, const std::string& method, const json& params) {
    line({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }

  void elicit(const json& id) { question(id, "elicitation/create", {{"message", "Who?"}}); }

  json answer_to(const json& id) {
    for (const auto& text : script->lines_of(script->children.size())) {
      auto message = json::parse(text);
      if (!message.contains("method") && message["id"] == id) {
        return message;
      }
    }
    return {};
  }

  std::string accepted = R"({"action":"accept","content":{"name":"Ada"}})";
  json done = {{"content", {{{"type", "text"}, {"text", "done"}}}}, {"resultType", "complete"}};
  std::shared_ptr<caller_log> asked = std::make_shared<caller_log>();
  std::shared_ptr<caller_log> asked_too = std::make_shared<caller_log>();
  tool_caller_actor first;
  tool_caller_actor second;
  std::vector<json> requests;
};

json needs(const json& requests, const json& state = nullptr) {
  json result = {{"resultType", "input_required"}};
  if (!requests.is_null()) {
    result["inputRequests"] = requests;
  }
  if (!state.is_null()) {
    result["requestState"] = state;
  }
  return result;
}

json elicitation(const std::string& message = "Who?") {
  return {{"method", "elicitation/create"}, {"params", {{"message", message}}}};
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_client_questions_tests, questions_fixture)

CAF_TEST(what_the_client_can_be_asked_is_declared_when_the_server_starts) {
  make_client();
  call_by(first);
  auto declared = json::parse(script->lines_of(1)[1])["params"]["capabilities"];
  CAF_CHECK(declared == json::parse(R"({"elicitation":{"form":{},"url":{}},"sampling":{}})"));
}

CAF_TEST(nothing_is_declared_where_there_is_no_client) {
  env->client->set({});
  make_client();
  auto result = call_by(first);
  CAF_CHECK(json::parse(script->lines_of(1)[1])["params"]["capabilities"] == json::object());
  elicit(1);
  CAF_CHECK(answer_to(1)["error"]["code"] == -32601);
  question(2, "sampling/createMessage", {{"messages", json::array()}});
  CAF_CHECK(answer_to(2)["error"]["code"] == -32601);
  CAF_CHECK(asked->questions.empty());
  CAF_CHECK(result->pending());
}

CAF_TEST(a_question_in_a_call_is_passed_to_its_caller_and_answered) {
  make_client();
  auto result = call_by(first);
  elicit("q");
  CAF_REQUIRE_EQUAL(asked->questions.size(), 1u);
  CAF_CHECK_EQUAL(asked->questions[0].call, last_call);
  CAF_CHECK_EQUAL(asked->questions[0].method, "elicitation/create");
  CAF_CHECK_EQUAL(asked->questions[0].params, R"({"message":"Who?"})");
  CAF_CHECK(answer_to("q").is_null());
  asked->answer(0, accepted);
  consume_messages();
  CAF_CHECK(answer_to("q")["result"] == json::parse(accepted));
  question(7, "sampling/createMessage", {{"messages", json::array()}, {"maxTokens", 5}});
  CAF_REQUIRE_EQUAL(asked->questions.size(), 2u);
  asked->refuse(1, errc::denied, "the user said no");
  consume_messages();
  CAF_CHECK(answer_to(7)["error"]["code"] == -1);
  answer(script->children[0], requests[0], done);
  consume_messages();
  CAF_CHECK(result->value);
}

CAF_TEST(a_feature_that_was_not_declared_is_refused) {
  make_client();
  call_by(first);
  question(1, "sampling/createMessage", {{"messages", json::array()}, {"tools", json::array()}});
  CAF_CHECK(answer_to(1)["error"]["code"] == -32602);
  question(2, "elicitation/create", {{"mode", "url"}, {"url", "file:///etc/passwd"}});
  CAF_CHECK(answer_to(2)["error"]["code"] == -32602);
  question(3, "elicitation/create", {{"message", std::string(2 * mebibyte, 'x')}});
  CAF_CHECK(answer_to(3)["error"]["code"] == -32602);
  CAF_CHECK(asked->questions.empty());
}

CAF_TEST(what_the_client_behind_can_not_answer_after_all_is_refused) {
  make_client();
  call_by(first);
  elicit(1);
  asked->refuse(0, errc::unavailable, "this client can't be asked");
  consume_messages();
  CAF_CHECK(answer_to(1)["error"]["code"] == -32601);
  auto nobodys = call("t");
  cancel(1);
  pass(61s);
  elicit(2);
  CAF_CHECK(answer_to(2)["error"]["code"] != nullptr);
}

CAF_TEST(a_question_outside_of_calls_is_refused) {
  make_client();
  documents();
  elicit(1);
  CAF_CHECK(answer_to(1)["error"]["code"] == -32603);
}

CAF_TEST(several_calls_of_one_run_are_one_callers) {
  make_client();
  call_by(first);
  call_by(first);
  elicit(1);
  CAF_REQUIRE_EQUAL(asked->questions.size(), 1u);
  CAF_CHECK_EQUAL(asked->questions[0].call, 1u);
}

CAF_TEST(a_question_that_may_be_another_runs_is_put_to_nobody) {
  make_client();
  auto one = call_by(first);
  auto other = call_by(second);
  elicit(1);
  CAF_CHECK(answer_to(1)["error"]["code"] == -32603);
  CAF_CHECK(answer_to(1)["error"]["message"].get<std::string>().find("several runs") !=
            std::string::npos);
  // The first is given up, but the server may work on it still.
  cancel(1);
  elicit(2);
  CAF_CHECK(answer_to(2)["error"]["code"] == -32603);
  CAF_CHECK(asked->questions.empty() && asked_too->questions.empty());
  pass(40s);
  auto last = call_by(second);
  pass(25s);
  elicit(3);
  CAF_CHECK(asked->questions.empty());
  CAF_CHECK_EQUAL(asked_too->questions.size(), 1u);
}

CAF_TEST(a_call_given_up_at_its_deadline_counts_too) {
  make_client();
  call_by(first, "t", "{}", 1s);
  pass(1010ms);
  call_by(second);
  elicit(1);
  CAF_CHECK(asked->questions.empty() && asked_too->questions.empty());
  CAF_CHECK(answer_to(1)["error"]["code"] == -32603);
}

CAF_TEST(the_time_of_a_call_rests_while_its_caller_is_asked) {
  make_client();
  auto result = call_by(first, "t", "{}", 10s);
  pass(5s);
  elicit(1);
  pass(60s);
  CAF_CHECK(result->pending());
  asked->answer(0, accepted);
  pass(4900ms);
  CAF_CHECK(result->pending());
  pass(200ms);
  CAF_CHECK(tells(result->failure, errc::timeout, {"no answer within"}));
}

CAF_TEST(a_question_has_an_end_and_so_has_their_number) {
  env->bounds.call_questions = 3;
  env->bounds.question_time = 30s;
  make_client();
  auto result = call_by(first);
  elicit(1);
  pass(32s);
  CAF_CHECK(answer_to(1)["error"]["code"] == -32603);
  elicit(2);
  CAF_CHECK(answer_to(2)["error"]["code"] == -32603); // the time is used up
  auto another = call_by(first);
  answer(script->children[0], requests[0], done);
  consume_messages();
  for (int i = 10; i < 13; ++i) {
    elicit(i);
    CAF_CHECK_EQUAL(asked->questions.size(), static_cast<std::size_t>(i - 8));
  }
  elicit(13);
  CAF_CHECK(answer_to(13)["error"]["code"] == -32603);
  CAF_CHECK(another->pending());
}

CAF_TEST(an_answer_after_the_end_of_a_call_reaches_the_server) {
  // Another call of the run may be the one that asks.
  make_client();
  call_by(first);
  auto other = call_by(first);
  elicit(1);
  cancel(1);
  asked->answer(0, accepted);
  consume_messages();
  CAF_CHECK(answer_to(1)["result"] == json::parse(accepted));
  CAF_CHECK(other->pending());
}

CAF_TEST(an_answer_after_the_end_of_its_server_goes_nowhere) {
  make_client();
  call_by(first);
  elicit(1);
  asked->answer(0, accepted);
  consume_messages();
  call_by(first);
  elicit(2);
  script->children[0].exit(1);
  consume_messages();
  auto result = call_by(first);
  pass(500ms);
  CAF_REQUIRE_EQUAL(script->children.size(), 2u);
  asked->answer(1, accepted);
  consume_messages();
  CAF_CHECK(answer_to(2).is_null());
  CAF_CHECK(result->pending());
}

CAF_TEST(roots_are_those_of_the_entry) {
  entry.roots = {"file:///data", "file:///more"};
  make_client();
  call_by(first);
  auto declared = json::parse(script->lines_of(1)[1])["params"]["capabilities"];
  CAF_CHECK(declared["roots"] == json::object());
  line({{"jsonrpc", "2.0"}, {"id", "r"}, {"method", "roots/list"}});
  CAF_CHECK(answer_to("r")["result"] ==
            json::parse(R"({"roots":[{"uri":"file:///data"},{"uri":"file:///more"}]})"));
}

CAF_TEST(input_that_a_modern_server_requires_is_got_and_the_call_made_again) {
  server.merge(modern_methods());
  server.erase("initialize");
  entry.roots = {"file:///data"};
  make_client();
  auto result = call_by(first, "t", R"({"a":1})");
  CAF_REQUIRE_EQUAL(requests.size(), 1u);
  auto meta = requests[0]["params"]["_meta"];
  CAF_CHECK(meta["io.modelcontextprotocol/clientCapabilities"] ==
            json::parse(R"({"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}})"));
  answer(script->children[0], requests[0],
         needs({{"who", elicitation()},
                {"model", {{"method", "sampling/createMessage"}, {"params", {{"maxTokens", 5}}}}},
                {"where", {{"method", "roots/list"}}}},
               "state\n\"1\""));
  consume_messages();
  CAF_REQUIRE_EQUAL(asked->questions.size(), 2u);
  CAF_CHECK_EQUAL(requests.size(), 1u);
  auto of = [&](const std::string& method) {
    return asked->questions[0].method == method ? 0u : 1u;
  };
  asked->answer(of("sampling/createMessage"), R"({"role":"assistant"})");
  consume_messages();
  CAF_CHECK_EQUAL(requests.size(), 1u);
  asked->answer(of("elicitation/create"), accepted);
  consume_messages();
  CAF_REQUIRE_EQUAL(requests.size(), 2u);
  CAF_CHECK(requests[1]["id"] != requests[0]["id"]);
  auto params = requests[1]["params"];
  CAF_CHECK(params["name"] == "t" && params["arguments"] == json({{"a", 1}}));
  CAF_CHECK(params["requestState"] == "state\n\"1\"");
  CAF_CHECK(params["inputResponses"] ==
            json({{"who", json::parse(accepted)},
                  {"model", {{"role", "assistant"}}},
                  {"where", {{"roots", {{{"uri", "file:///data"}}}}}}}));
  // An answer to the first request comes too late.
  answer(script->children[0], requests[0], done);
  consume_messages();
  CAF_CHECK(result->pending());
  answer(script->children[0], requests[1], needs({{"again", elicitation()}}));
  consume_messages();
  asked->answer(2, accepted);
  consume_messages();
  CAF_REQUIRE_EQUAL(requests.size(), 3u);
  CAF_CHECK(!requests[2]["params"].contains("requestState"));
  CAF_CHECK(!requests[2]["params"]["inputResponses"].contains("who"));
  answer(script->children[0], requests[2], done);
  consume_messages();
  CAF_REQUIRE(result->value);
  CAF_CHECK(json::parse(*result->value) == done);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(a_modern_server_that_wants_only_time_gets_it) {
  server.merge(modern_methods());
  server.erase("initialize");
  make_client();
  auto result = call_by(first);
  answer(script->children[0], requests[0], needs(nullptr, "later"));
  consume_messages();
  CAF_CHECK_EQUAL(requests.size(), 1u);
  pass(600ms);
  CAF_REQUIRE_EQUAL(requests.size(), 2u);
  CAF_CHECK(requests[1]["params"]["requestState"] == "later");
  CAF_CHECK(!requests[1]["params"].contains("inputResponses"));
  answer(script->children[0], requests[1], done);
  consume_messages();
  CAF_CHECK(result->value);
}

CAF_TEST(input_is_required_so_often_and_no_more) {
  server.merge(modern_methods());
  server.erase("initialize");
  env->bounds.input_rounds = 3;
  make_client();
  auto result = call_by(first);
  for (int i = 0; i < 4; ++i) {
    CAF_REQUIRE_EQUAL(requests.size(), static_cast<std::size_t>(i + 1));
    answer(script->children[0], requests[i], needs(nullptr, "more"));
    pass(600ms);
  }
  CAF_CHECK(tells(result->failure, errc::server_failed, {"still asks for more input after 3"}));
}

CAF_TEST(a_call_whose_input_can_not_be_had_fails) {
  server.merge(modern_methods());
  server.erase("initialize");
  env->client->set({true, false, false, false, false});
  make_client();
  auto answered_with = [&](const json& requests_of_it) {
    auto result = call_by(first);
    answer(script->children[0], requests.back(), needs(requests_of_it));
    consume_messages();
    return result;
  };
  auto no_model = answered_with({{"m", {{"method", "sampling/createMessage"}}}});
  CAF_CHECK(tells(no_model->failure, errc::unavailable, {"tool \"t\"", "sampling"}));
  auto no_roots = answered_with({{"r", {{"method", "roots/list"}}}});
  CAF_CHECK(tells(no_roots->failure, errc::unavailable, {"roots/list"}));
  auto refused = answered_with({{"a", elicitation()}, {"b", elicitation()}});
  CAF_REQUIRE_EQUAL(asked->questions.size(), 2u);
  asked->refuse(0, errc::unavailable, "nobody is there");
  consume_messages();
  CAF_CHECK(tells(refused->failure, errc::unavailable,
                  {"asks for input (elicitation/create)", "nobody is there"}));
  asked->answer(1, accepted);
  consume_messages();
  CAF_CHECK_EQUAL(requests.size(), 3u);
  auto nobodys = call("t");
  answer(script->children[0], requests.back(), needs({{"a", elicitation()}}));
  consume_messages();
  CAF_CHECK(tells(nobodys->failure, errc::unavailable, {"nobody can be asked"}));
  CAF_CHECK(requests.back()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] ==
            json::object());
}

CAF_TEST(a_call_that_waits_for_input_can_be_cancelled) {
  server.merge(modern_methods());
  server.erase("initialize");
  make_client();
  auto result = call_by(first);
  answer(script->children[0], requests[0], needs({{"a", elicitation()}}));
  consume_messages();
  cancel(1);
  CAF_CHECK(tells(result->failure, errc::cancelled, {}));
  // For the server it is over already.
  CAF_CHECK(script->input[1].find("notifications/cancelled") == std::string::npos);
  asked->answer(0, accepted);
  consume_messages();
  CAF_CHECK_EQUAL(requests.size(), 1u);
}

CAF_TEST(a_missing_capability_is_told) {
  server["tools/call"] = [](const auto& child, const auto& request) {
    child.line(json({{"jsonrpc", "2.0"},
                     {"id", request["id"]},
                     {"error",
                      {{"code", -32021},
                       {"message", "no"},
                       {"data", {{"requiredCapabilities", {{"sampling", json::object()}}}}}}}})
                   .dump());
  };
  make_client();
  CAF_CHECK(tells(call_by(first)->failure, errc::unavailable,
                  {"tool \"t\"", "\"srv\"", "a client with sampling"}));
}

CAF_TEST(progress_is_passed_on_as_long_as_it_increases) {
  make_client();
  auto result = call_by(first);
  auto token = requests[0]["params"]["_meta"]["progressToken"];
  CAF_CHECK(token == requests[0]["id"]);
  auto progress = [&](const json& value, const json& of = nullptr) {
    line({{"jsonrpc", "2.0"},
          {"method", "notifications/progress"},
          {"params",
           {{"progressToken", of.is_null() ? token : of}, {"progress", value}, {"total", 4}}}});
  };
  progress(1);
  progress(1);
  progress(0.5);
  progress(3, 99);
  progress(2);
  CAF_REQUIRE_EQUAL(asked->progress.size(), 2u);
  CAF_CHECK((asked->progress[1] == tool_progress{last_call, 2, 4, ""}));
  for (int i = 10; i < 1000; ++i) {
    progress(i);
  }
  CAF_CHECK(asked->progress.size() < 20);
  pass(1s);
  progress(2000);
  CAF_CHECK(asked->progress.back().progress == 2000);
  answer(script->children[0], requests[0], done);
  progress(3000);
  CAF_CHECK(asked->progress.back().progress == 2000);
  call("t");
  CAF_CHECK(!requests.back()["params"].contains("_meta"));
}

CAF_TEST(what_servers_log_goes_to_our_log_in_bounds) {
  std::ostringstream text;
  env->log = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text));
  env->log->set_level(spdlog::level::debug);
  entry.env = {{"TOKEN", "hidden-token"}};
  make_client();
  call_by(first);
  for (int i = 0; i < 1000; ++i) {
    script->children[0].line(
        R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info",)"
        R"("data":"a hidden-token"}})");
  }
  consume_messages();
  auto all = text.str();
  CAF_CHECK(all.find("\"srv\" says: info: a [hidden]") != std::string::npos);
  CAF_CHECK(all.find("hidden-token") == std::string::npos);
  CAF_CHECK(std::count(all.begin(), all.end(), '\n') < 40);
}

CAF_TEST_FIXTURE_SCOPE_END()
