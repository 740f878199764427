#define CAF_SUITE mcp_client_calls

#include "tests/support/mcp_client_fixture.hpp"

/// Calls, what a server may send meanwhile, and bounds.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// Keeps calls unanswered, by tool name, for the test to answer.
struct held_calls {
  std::map<std::string, json> requests;
  void take(methods& server) {
    server["tools/call"] = [this](const auto&, const auto& request) {
      requests[request["params"]["name"].template get<std::string>()] = request;
    };
  }
};

json text_result(const std::string& text) {
  return {{"content", {{{"type", "text"}, {"text", text}}}}};
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_client_calls_tests, client_fixture)

CAF_TEST(results_are_handed_on_as_they_stand) {
  held_calls held;
  held.take(server);
  make_client();
  auto result = call("t");
  auto text = R"({ "content" : [ {"type":"x-new","n":1.50} ],  "isError":true , "_meta":{} })";
  script->children[0].out(R"({"jsonrpc":"2.0","result":)");
  consume_messages();
  CAF_CHECK(result->pending());
  script->children[0].out(std::string{text} + R"(,"id":)" + held.requests["t"]["id"].dump() +
                          "}\r\n");
  consume_messages();
  CAF_REQUIRE(result->value);
  CAF_CHECK_EQUAL(*result->value, text);
}

CAF_TEST(calls_overlap_and_may_be_answered_in_any_order) {
  entry.most_calls = 50;
  held_calls held;
  held.take(server);
  make_client();
  std::vector<outcome_ptr<std::string>> results;
  for (int i = 0; i < 50; ++i) {
    results.push_back(call("tool" + std::to_string(i)));
  }
  CAF_REQUIRE_EQUAL(held.requests.size(), 50u);
  for (int i = 49; i >= 0; --i) {
    answer(script->children[0], held.requests["tool" + std::to_string(i)],
           text_result(std::to_string(i)));
    consume_messages();
    CAF_REQUIRE(results[i]->value);
    CAF_CHECK_EQUAL(json::parse(*results[i]->value), text_result(std::to_string(i)));
  }
}

CAF_TEST(more_calls_than_the_server_may_have_wait_in_order) {
  entry.most_calls = 2;
  env->bounds.calls_waiting = 3;
  held_calls held;
  held.take(server);
  make_client();
  std::vector<outcome_ptr<std::string>> results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(call("tool" + std::to_string(i), "{}", i == 2 ? 1s : 60s));
  }
  CAF_CHECK_EQUAL(held.requests.size(), 2u);
  CAF_CHECK(tells(call("more")->failure, errc::overloaded, {"3 calls wait", "\"more\""}));
  pass(1010ms);
  CAF_CHECK(tells(results[2]->failure, errc::timeout,
                  {"in vain", "maxConcurrentCalls", "servers.json", "2 other calls"}));
  answer(script->children[0], held.requests["tool0"], text_result("0"));
  consume_messages();
  CAF_CHECK(results[0]->value);
  CAF_CHECK(held.requests.contains("tool3") && !held.requests.contains("tool4"));
  // Whatever ends a call makes room.
  cancel(2);
  CAF_CHECK(held.requests.contains("tool4"));
  for (const auto* tool : {"tool3", "tool4"}) {
    answer(script->children[0], held.requests[tool], text_result(tool));
  }
  consume_messages();
  CAF_CHECK(results[3]->value && results[4]->value);
  CAF_CHECK(!held.requests.contains("tool2"));
}

CAF_TEST(a_call_that_waits_for_its_turn_can_be_cancelled) {
  entry.most_calls = 1;
  held_calls held;
  held.take(server);
  make_client();
  auto first = call("first");
  auto second = call("second");
  auto third = call("third");
  cancel(2);
  CAF_CHECK(tells(second->failure, errc::cancelled, {"second"}));
  CAF_CHECK(script->input[1].find("cancelled") == std::string::npos);
  answer(script->children[0], held.requests["first"], text_result("x"));
  consume_messages();
  CAF_CHECK(held.requests.contains("third"));
  CAF_CHECK(!held.requests.contains("second"));
}

CAF_TEST(calls_that_were_in_the_way_of_a_start_are_sent_as_far_as_they_may) {
  entry.most_calls = 2;
  held_calls held;
  held.take(server);
  server["initialize"] = ignore;
  make_client();
  for (int i = 0; i < 4; ++i) {
    call("tool" + std::to_string(i));
  }
  legacy_methods()["initialize"](script->children[0], last_line(1));
  consume_messages();
  CAF_CHECK(held.requests.size() == 2 && held.requests.contains("tool0"));
}

CAF_TEST(a_call_past_its_deadline_is_cancelled_at_the_server_alone) {
  held_calls held;
  held.take(server);
  make_client();
  auto slow = call("slow", "{}", 2s);
  auto other = call("other");
  pass(1990ms);
  CAF_CHECK(slow->pending());
  pass(20ms);
  CAF_CHECK(tells(slow->failure, errc::timeout,
                  {"call tool \"slow\" of MCP server \"srv\": no answer within 2.0 s, which"}));
  auto note = last_line(1);
  CAF_CHECK(note["method"] == "notifications/cancelled");
  CAF_CHECK(note["params"]["requestId"] == held.requests["slow"]["id"]);
  // The late answer is dropped; the other call goes on.
  answer(script->children[0], held.requests["slow"], text_result("late"));
  answer(script->children[0], held.requests["other"], text_result("other"));
  consume_messages();
  CAF_CHECK(!slow->value);
  CAF_CHECK(other->value);
}

CAF_TEST(a_servers_own_call_timeout_counts_from_the_sending) {
  entry.call_timeout = 3s;
  held_calls held;
  held.take(server);
  server["server/discover"] = ignore;
  make_client();
  auto result = call("t", "{}", 60s);
  pass(4990ms); // two of them for the start
  CAF_CHECK(result->pending());
  pass(30ms);
  CAF_CHECK(tells(result->failure, errc::timeout, {"no answer within 3.0 s, which"}));
}

CAF_TEST(a_call_whose_deadline_has_passed_is_not_made) {
  make_client();
  call("echo");
  auto lines = script->lines_of(1).size();
  CAF_CHECK(tells(call("echo", "{}", 0ms)->failure, errc::timeout, {"deadline"}));
  CAF_CHECK_EQUAL(script->lines_of(1).size(), lines);
}

CAF_TEST(cancelling_tells_the_server_and_the_caller) {
  held_calls held;
  held.take(server);
  make_client();
  auto first = call("first");
  auto second = call("second");
  cancel(1);
  CAF_CHECK(tells(first->failure, errc::cancelled, {"tool \"first\""}));
  CAF_CHECK(second->pending());
  CAF_CHECK(last_line(1)["method"] == "notifications/cancelled");
  CAF_CHECK(last_line(1)["params"]["requestId"] == held.requests["first"]["id"]);
  auto lines = script->lines_of(1).size();
  cancel(1);
  CAF_CHECK_EQUAL(script->lines_of(1).size(), lines);
}

CAF_TEST(a_cancel_may_overtake_its_call) {
  make_client();
  call("echo");
  cancel(last_call + 1);
  CAF_CHECK(tells(call("echo")->failure, errc::cancelled, {}));
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(a_call_cancelled_during_the_start_is_never_sent) {
  server["initialize"] = ignore;
  make_client();
  auto first = call("first");
  auto second = call("second");
  cancel(1);
  CAF_CHECK(tells(first->failure, errc::cancelled, {}));
  legacy_methods()["initialize"](script->children[0], last_line(1));
  consume_messages();
  CAF_CHECK(second->value);
  CAF_CHECK(script->input[1].find("\"first\"") == std::string::npos);
  CAF_CHECK(script->input[1].find("cancelled") == std::string::npos);
}

CAF_TEST(requests_of_the_server_are_answered) {
  make_client();
  call("echo");
  const auto& child = script->children[0];
  child.line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  consume_messages();
  CAF_CHECK(last_line(1) == json::parse(R"({"jsonrpc":"2.0","id":0,"result":{}})"));
  child.line(R"({"jsonrpc":"2.0","id":"r","method":"roots/list"})");
  consume_messages();
  CAF_CHECK(last_line(1)["error"]["code"] == -32601);
  child.line(R"({"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}})");
  consume_messages();
  CAF_CHECK(last_line(1)["error"]["code"] == -32601);
}

CAF_TEST(noise_and_notifications_disturb_nothing) {
  held_calls held;
  held.take(server);
  make_client();
  auto result = call("t");
  const auto& child = script->children[0];
  for (const char* noise :
       {"", "   ", "Server listening", "123", "\"text\"", "null", "[]", "{", "{}", "{\"id\":4}",
        "\xff\xfe", "[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]",
        R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{}}})",
        R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0}})",
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}})",
        R"({"jsonrpc":"2.0","id":999999,"result":{}})",
        R"({"jsonrpc":"2.0","id":"3","result":{}})"}) {
    child.line(noise);
  }
  consume_messages();
  CAF_CHECK(result->pending());
  answer(child, held.requests["t"], text_result("x"));
  consume_messages();
  CAF_CHECK(result->value);
}

CAF_TEST(an_error_answer_names_tool_server_code_and_message) {
  entry.env = {{"TOKEN", "hidden-token"}};
  server["tools/call"] = [](const auto& child, const auto& request) {
    refuse(child, request, -32000, "no access with hidden-token\nto it");
  };
  make_client();
  CAF_CHECK(
      tells(call("t")->failure, errc::server_failed,
            {"tool \"t\" of MCP server \"srv\" failed: -32000 no access with [hidden] to it"}));
}

CAF_TEST(an_unknown_tool_is_not_found_however_the_server_says_it) {
  int code = 0;
  std::string text;
  server["tools/call"] = [&](const auto& child, const auto& request) {
    refuse(child, request, code, text);
  };
  make_client();
  code = -32602;
  text = "MCP error -32602: Tool ecko not found";
  CAF_CHECK(
      tells(call("ecko")->failure, errc::not_found, {"MCP server \"srv\" has no tool \"ecko\""}));
  code = -32603;
  text = "internal";
  CAF_CHECK(tells(call("ecko")->failure, errc::server_failed, {"-32603 internal"}));
  documents();
  CAF_CHECK(tells(call("ecko")->failure, errc::not_found, {"did you mean echo?"}));
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"-32603 internal"}));
}

CAF_TEST(a_result_that_asks_for_input_or_is_no_object_fails_the_call) {
  server = modern_methods();
  json result;
  server["tools/call"] = [&](const auto& child, const auto& request) {
    answer(child, request, result);
  };
  make_client();
  result = {{"resultType", "input_required"}, {"inputRequests", json::object()}};
  CAF_CHECK(tells(call("t")->failure, errc::server_failed, {"tool \"t\"", "asks for more input"}));
  result = json::array();
  CAF_CHECK(tells(call("t")->failure, errc::server_failed, {"no JSON object"}));
}

CAF_TEST(a_result_over_the_limit_is_refused_with_its_size) {
  env->bounds.tool_payload = 1000;
  server["tools/call"] = [](const auto& child, const auto& request) {
    answer(child, request, text_result(std::string(1000, 'x')));
  };
  make_client();
  CAF_CHECK(
      tells(call("t")->failure, errc::too_large,
            {"tool \"t\" of MCP server \"srv\": the result has 1039 bytes; the limit is 1000"}));
  CAF_CHECK(tells(call("t", R"({"a":")" + std::string(1000, 'x') + "\"}")->failure, errc::too_large,
                  {"the arguments have 1008 bytes; the limit is 1000"}));
}

CAF_TEST(a_line_over_the_limit_fails_the_call_it_answers) {
  env->bounds.line = 1000;
  held_calls held;
  held.take(server);
  make_client();
  auto first = call("first");
  auto second = call("second");
  auto third = call("third");
  const auto& child = script->children[0];
  auto id = [&](const char* tool) { return held.requests[tool]["id"].dump(); };
  auto bulk = R"("result":{"x":")" + std::string(2000, 'x') + "\"}";
  child.line("{" + bulk + R"(,"jsonrpc":"2.0","id":)" + id("first") + "}");
  consume_messages();
  CAF_CHECK(tells(first->failure, errc::too_large, {"tool \"first\"", "1000 bytes a line"}));
  child.line(R"({"jsonrpc":"2.0","id":)" + id("second") + "," + bulk + "}");
  consume_messages();
  CAF_CHECK(tells(second->failure, errc::too_large, {"tool \"second\""}));
  CAF_CHECK(third->pending());
  answer(child, held.requests["third"], text_result("x"));
  consume_messages();
  CAF_CHECK(third->value);
}

CAF_TEST(a_line_over_the_limit_that_may_be_anyones_fails_all) {
  env->bounds.line = 1000;
  held_calls held;
  held.take(server);
  make_client();
  auto first = call("first");
  auto second = call("second");
  script->children[0].line("a long line of noise" + std::string(2000, '.'));
  script->children[0].line(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"a":")" +
                           std::string(2000, '.') + "\"}}");
  consume_messages();
  CAF_CHECK(first->pending() && second->pending());
  script->children[0].line(R"({"result":{"x":")" + std::string(2000, '.') + R"("},"id":"?"})");
  consume_messages();
  CAF_CHECK(tells(first->failure, errc::too_large, {"first"}));
  CAF_CHECK(tells(second->failure, errc::too_large, {"second"}));
  CAF_CHECK_EQUAL(status().state, "ready");
}

CAF_TEST(an_answer_that_can_not_be_read_fails_its_call_at_once) {
  held_calls held;
  held.take(server);
  make_client();
  auto send = [&](const std::string& result) {
    auto outcome = call("t");
    script->children[0].line(R"({"jsonrpc":"2.0","id":)" + held.requests["t"]["id"].dump() +
                             R"(,"result":)" + result + "}");
    consume_messages();
    return outcome->failure;
  };
  CAF_CHECK(tells(send(R"({"x":"\ud83d"})"), errc::server_failed, {"can't be read"}));
  CAF_CHECK(tells(send("{\"x\":\"\xff\"}"), errc::server_failed, {"can't be read"}));
  CAF_CHECK(tells(send(R"({"x":1,"x":2})"), errc::server_failed, {"can't be read"}));
  CAF_CHECK(
      tells(send(std::string(200, '[') + std::string(200, ']')), errc::too_large, {"nesting"}));
  std::string many = "[0";
  for (int i = 0; i < 100'000; ++i) {
    many += ",0";
  }
  CAF_CHECK(tells(send(many + "]"), errc::too_large, {"t"}));
  CAF_CHECK(script->children[0].alive());
}

CAF_TEST(bytes_that_are_dealt_with_are_given_back_as_credit) {
  server["tools/call"] = [](const auto& child, const auto& request) {
    child.err(std::string(1000, 'e'));
    answer(child, request, text_result(std::string(10'000, 'x')));
  };
  make_client();
  for (int i = 0; i < 400; ++i) {
    CAF_REQUIRE(call("t")->value);
  }
  auto out = script->credit[{1, stream_id::out}];
  CAF_CHECK(out > 3'700'000);
  CAF_CHECK(out < 400 * 10'200);
  CAF_CHECK(script->credit[{1, stream_id::err}] >= 256 * 1024);
}

CAF_TEST(a_server_that_does_not_read_gets_no_more_than_the_window) {
  env->bounds.write_ahead = 10'000;
  make_client();
  call("echo");
  script->input_blocked = true;
  auto before = script->input[1].size();
  auto arguments = R"({"a":")" + std::string(3000, 'x') + "\"}";
  std::vector<outcome_ptr<std::string>> results;
  for (int i = 0; i < 10; ++i) {
    results.push_back(call("t", arguments, 5s));
  }
  CAF_CHECK(script->input[1].size() - before <= 10'000);
  CAF_CHECK(script->input[1].size() - before > 9'000);
  // It asks and asks and doesn't read.
  for (int i = 0; i < 10'000; ++i) {
    script->children[0].line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  }
  consume_messages();
  CAF_CHECK(env->budget->used() < 100'000);
  pass(6s);
  for (const auto& result : results) {
    CAF_CHECK(tells(result->failure, errc::timeout, {}));
  }
}

CAF_TEST(what_waits_is_charged_to_the_memory_budget) {
  env->budget = std::make_shared<memory_budget>(100'000);
  server["initialize"] = ignore;
  make_client();
  auto arguments = R"({"a":")" + std::string(40'000, 'x') + "\"}";
  auto first = call("t", arguments);
  auto second = call("t", arguments);
  auto third = call("t", arguments);
  CAF_CHECK(first->pending() && second->pending());
  CAF_CHECK(
      tells(third->failure, errc::overloaded, {"tool \"t\" of MCP server \"srv\"", "try again"}));
  legacy_methods()["initialize"](script->children[0], last_line(1));
  consume_messages();
  CAF_CHECK(first->value && second->value);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(an_unfinished_answer_is_charged_and_dropped_without_memory) {
  env->budget = std::make_shared<memory_budget>(1'000'000);
  held_calls held;
  held.take(server);
  make_client();
  auto first = call("first");
  auto second = call("second");
  const auto& child = script->children[0];
  child.out(R"({"jsonrpc":"2.0","id":)" + held.requests["first"]["id"].dump() +
            R"(,"result":{"x":")");
  for (int i = 0; i < 10; ++i) {
    child.out(std::string(50'000, 'x'));
  }
  consume_messages();
  CAF_CHECK(env->budget->used() >= 500'000);
  for (int i = 0; i < 15; ++i) {
    child.out(std::string(50'000, 'x'));
  }
  consume_messages();
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  child.out("\"}}\n");
  consume_messages();
  CAF_CHECK(tells(first->failure, errc::overloaded, {"first", "no memory"}));
  answer(child, held.requests["second"], text_result("x"));
  consume_messages();
  CAF_CHECK(second->value);
}

CAF_TEST(results_take_the_room_of_their_run_or_are_refused) {
  held_calls held;
  held.take(server);
  make_client();
  auto budget = std::make_shared<memory_budget>(150'000, 0, env->budget);
  std::vector<answer_room> rooms;
  auto ask_for = [&](const std::string& tool) {
    rooms.emplace_back(budget);
    return ask<std::string>(call_atom::value,
                            tool_call{++last_call, tool, "{}", in(60s), rooms.back()});
  };
  auto first = ask_for("first");
  auto second = ask_for("second");
  auto small = ask_for("small");
  const auto& child = script->children[0];
  answer(child, held.requests["first"], text_result(std::string(100'000, 'x')));
  answer(child, held.requests["second"], text_result(std::string(100'000, 'x')));
  answer(child, held.requests["small"], text_result("x"));
  consume_messages();
  CAF_CHECK(first->value);
  CAF_CHECK(tells(second->failure, errc::overloaded, {"second", "\"srv\"", "fewer calls"}));
  CAF_CHECK(small->value);
  CAF_CHECK(budget->used() >= 100'000 && budget->used() < 150'000);
  CAF_CHECK_EQUAL(env->budget->used(), budget->used());
  rooms.clear();
  CAF_CHECK_EQUAL(budget->used(), 0u);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  auto third = ask_for("third");
  answer(child, held.requests["third"], text_result(std::string(100'000, 'x')));
  consume_messages();
  CAF_CHECK(third->value);
}

CAF_TEST_FIXTURE_SCOPE_END()
