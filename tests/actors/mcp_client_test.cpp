#define CAF_SUITE mcp_client

#include "tests/support/mcp_client_fixture.hpp"

/// Start, handshake, death, restart, stop.

using namespace bulkhead;
using namespace bulkhead::testing;

using lines_t = std::vector<std::string>;

CAF_TEST_FIXTURE_SCOPE(mcp_client_tests, client_fixture)

CAF_TEST(nothing_is_started_before_it_is_needed) {
  make_client();
  pass(1s);
  CAF_CHECK(script->children.empty());
  CAF_CHECK_EQUAL(status().state, "idle");
}

CAF_TEST(the_process_gets_a_minimal_environment_its_entry_and_the_marks) {
  entry.args = {"--flag", "value"};
  entry.env = {{"TOKEN", "abc"}, {"PATH", "/opt/bin"}, {"BULKHEAD_DEPTH", "0"}};
  make_client();
  call("echo");
  CAF_REQUIRE_EQUAL(script->children.size(), 1u);
  const auto& spec = script->children[0].spec();
  CAF_CHECK(spec.argv == (lines_t{"srv-command", "--flag", "value"}));
  CAF_CHECK(spec.env == (lines_t{"PATH=/opt/bin", "BULKHEAD_DEPTH=1", "TOKEN=abc",
                                 "BULKHEAD_CHILD=0123456789abcdef/handle-1"}));
  CAF_CHECK_EQUAL(spec.cwd, "/home/user");
  CAF_CHECK(spec.kill_group_at_exit);
}

CAF_TEST(a_legacy_server_is_probed_and_then_initialized) {
  make_client();
  auto result = call("echo", R"({"a":1})");
  CAF_REQUIRE(result->value);
  CAF_CHECK_EQUAL(*result->value, R"({"content":[],"structuredContent":{"a":1}})");
  CAF_CHECK(methods_of(1) ==
            (lines_t{"server/discover", "initialize", "notifications/initialized", "tools/call"}));
  CAF_CHECK_EQUAL(status().state, "ready");
  CAF_CHECK_EQUAL(status().version, "1.0");
}

CAF_TEST(a_modern_server_is_not_initialized_and_gets_metadata_with_each_request) {
  server = modern_methods();
  make_client();
  CAF_CHECK(call("echo")->value);
  CAF_CHECK(documents()->value);
  CAF_CHECK(methods_of(1) == (lines_t{"server/discover", "tools/call", "tools/list"}));
  for (const auto& line : script->lines_of(1)) {
    CAF_CHECK(json::parse(line)["params"].contains("_meta"));
  }
}

CAF_TEST(the_era_is_remembered_for_the_next_start) {
  make_client();
  call("echo");
  script->children[0].exit(0);
  pass(200ms);
  CAF_CHECK(call("echo")->value);
  CAF_CHECK(methods_of(2) == (lines_t{"initialize", "notifications/initialized", "tools/call"}));
}

CAF_TEST(a_legacy_server_that_became_modern_is_found_out) {
  make_client();
  call("echo");
  script->children[0].exit(0);
  server = modern_methods();
  pass(200ms);
  CAF_CHECK(call("echo")->value);
  CAF_CHECK(methods_of(2) == (lines_t{"initialize", "server/discover", "tools/call"}));
}

CAF_TEST(requests_that_come_together_share_one_start) {
  server["initialize"] = ignore;
  make_client();
  auto first = call("echo");
  auto second = call("echo");
  auto third = documents();
  CAF_CHECK_EQUAL(status().state, "starting");
  CAF_CHECK_EQUAL(script->children.size(), 1u);
  CAF_CHECK(first->pending() && second->pending() && third->pending());
  legacy_methods()["initialize"](script->children[0], last_line(1));
  consume_messages();
  CAF_CHECK(first->value && second->value && third->value);
  CAF_CHECK_EQUAL(script->children.size(), 1u);
}

CAF_TEST(a_server_that_ignores_discovery_is_initialized_after_two_seconds) {
  server["server/discover"] = ignore;
  make_client();
  auto result = call("echo");
  pass(1990ms);
  CAF_CHECK(methods_of(1) == (lines_t{"server/discover"}));
  pass(20ms);
  CAF_CHECK(result->value);
  // The answer comes after all.
  refuse(script->children[0], json::parse(script->lines_of(1)[0]), -32601, "Method not found");
  CAF_CHECK(call("echo")->value);
  CAF_CHECK_EQUAL(script->children.size(), 1u);
}

CAF_TEST(a_slow_server_of_both_eras_is_legacy_once_initialized) {
  server["server/discover"] = server["initialize"] = ignore;
  make_client();
  auto result = call("echo");
  pass(3s);
  auto sent = script->lines_of(1);
  modern_methods()["server/discover"](script->children[0], json::parse(sent[0]));
  legacy_methods()["initialize"](script->children[0], json::parse(sent[1]));
  consume_messages();
  CAF_CHECK(result->value);
  CAF_CHECK(!last_line(1)["params"].contains("_meta"));
}

CAF_TEST(a_slow_modern_server_is_recognised_by_its_late_answer) {
  server = modern_methods();
  auto discover = std::exchange(server["server/discover"], ignore);
  make_client();
  auto result = call("echo");
  pass(3s);
  // `initialize` has been refused by now, which leaves it to the late answer.
  CAF_CHECK(methods_of(1) == (lines_t{"server/discover", "initialize"}));
  CAF_CHECK(result->pending());
  discover(script->children[0], json::parse(script->lines_of(1)[0]));
  consume_messages();
  CAF_CHECK(result->value);
  CAF_CHECK(last_line(1)["params"].contains("_meta"));
}

CAF_TEST(a_server_that_ends_at_discovery_is_started_again_without_it) {
  server["server/discover"] = [](const auto& child, const auto&) { child.exit(1); };
  make_client();
  CAF_CHECK(call("echo")->value);
  CAF_REQUIRE_EQUAL(script->children.size(), 2u);
  CAF_CHECK(methods_of(2) == (lines_t{"initialize", "notifications/initialized", "tools/call"}));
  CAF_CHECK_EQUAL(status().last_error, "");
}

CAF_TEST(a_server_that_always_ends_fails_its_callers_at_once_with_its_last_words) {
  entry.env = {{"API_KEY", "very-secret"}};
  script->started = [](const scripted_child& child) {
    child.err("bad key very-secret\n");
    child.exit(3);
  };
  make_client();
  auto result = call("echo");
  auto waiting = documents();
  CAF_CHECK(tells(result->failure, errc::server_failed,
                  {"\"srv\"", "exited with code 3 before it was ready", "bad key [hidden]"}));
  CAF_CHECK(result->failure->message.find("very-secret") == std::string::npos);
  CAF_CHECK_EQUAL(status().state, "backing off");
}

CAF_TEST(a_missing_command_is_told_with_the_remedy) {
  script->refuse = [](const process_spec&) { return error{errc::not_found, "no such command"}; };
  make_client();
  for (int i = 0; i < 20; ++i) {
    CAF_REQUIRE(
        tells(call("echo")->failure, errc::server_failed,
              {"start MCP server \"srv\": command \"srv-command\" not found on PATH; install "
               "it or correct \"command\" in servers.json"}));
  }
  // As soon as it is installed, it works.
  script->refuse = nullptr;
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(an_unknown_revision_fails_the_start) {
  server["initialize"] = [](const auto& child, const auto& request) {
    answer(child, request, {{"protocolVersion", "1999-01-01"}, {"capabilities", json::object()}});
  };
  make_client();
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"srv", "1999-01-01"}));
  CAF_CHECK(script->closed_inputs == std::vector<child_id>{1});
}

CAF_TEST(a_refused_handshake_fails_the_start) {
  server = {};
  make_client();
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed,
                  {"srv", "refused to initialize", "-32601"}));
}

CAF_TEST(callers_may_give_up_while_the_start_goes_on) {
  server["server/discover"] = server["initialize"] = ignore;
  make_client();
  auto early = call("echo", "{}", 5s);
  auto early_documents = documents(6s);
  auto late = call("echo", "{}", 60s);
  pass(5s);
  CAF_CHECK(tells(early->failure, errc::timeout,
                  {"\"srv\" is still starting (5s so far); retry in a moment, or", "--timeout"}));
  CAF_CHECK(early_documents->pending());
  pass(1s);
  CAF_CHECK(tells(early_documents->failure, errc::timeout, {"is still starting (6s so far)"}));
  pass(30s);
  CAF_CHECK(late->pending());
  CAF_CHECK_EQUAL(script->children.size(), 1u);
  legacy_methods()["initialize"](script->children[0], last_line(1));
  consume_messages();
  CAF_CHECK(late->value);
  auto calls = methods_of(1);
  CAF_CHECK_EQUAL(std::count(calls.begin(), calls.end(), "tools/call"), 1);
}

CAF_TEST(the_start_has_a_budget_of_its_own) {
  entry.start_timeout = 10s;
  server["server/discover"] = server["initialize"] = ignore;
  script->input_closed = [](const auto&) {};
  make_client();
  auto result = call("echo", "{}", 60s);
  pass(9900ms);
  CAF_CHECK(result->pending());
  pass(100ms);
  CAF_CHECK(
      tells(result->failure, errc::server_failed, {"wasn't ready within 10 s", "servers.json"}));
  pass(1s);
  CAF_CHECK_EQUAL(script->signals.size(), 1u);
  pass(1s);
  CAF_CHECK_EQUAL(status().state, "idle");
}

CAF_TEST(a_death_fails_running_calls_fast_and_is_followed_by_a_restart) {
  server["tools/call"] = ignore;
  make_client();
  auto first = call("one");
  auto second = call("two");
  script->children[0].err("segmentation\x1b[31m fault\n");
  script->children[0].exit(0, 11);
  consume_messages();
  CAF_CHECK(tells(first->failure, errc::server_failed,
                  {"call tool \"one\" of MCP server \"srv\"", "was killed by signal 11",
                   "segmentation [31m fault"}));
  CAF_CHECK(tells(second->failure, errc::server_failed, {"tool \"two\""}));
  CAF_CHECK(script->killed_marks == (lines_t{"0123456789abcdef/handle-1"}));

  server = legacy_methods();
  auto later = call("three");
  pass(90ms);
  CAF_CHECK(later->pending());
  pass(20ms);
  CAF_CHECK(later->value);
  CAF_REQUIRE_EQUAL(script->children.size(), 2u);
  CAF_CHECK(methods_of(2).back() == "tools/call");
  CAF_CHECK(last_line(2)["params"]["name"] == "three");
}

CAF_TEST(a_server_that_closes_its_stdout_and_lives_is_ended_and_started_again) {
  server["tools/call"] = [](const auto& child, const auto&) { child.out(""); };
  script->input_closed = [](const auto&) {};
  make_client();
  auto first = call("one");
  CAF_REQUIRE(script->children.size() == 1);
  script->children[0].err("out of paper\n");
  pass(900ms);
  CAF_CHECK(first->pending());
  pass(200ms);
  CAF_CHECK(tells(first->failure, errc::server_failed,
                  {"\"srv\"", "closed its stdout while it was in use", "out of paper"}));
  CAF_CHECK(script->closed_inputs == std::vector<child_id>{1});
  server = legacy_methods();
  auto second = call("two");
  pass(5s);
  CAF_CHECK_EQUAL(script->signals.size(), 1u);
  CAF_CHECK(!script->children[0].alive());
  CAF_CHECK_EQUAL(script->killed_marks.size(), 1u);
  CAF_REQUIRE_EQUAL(script->children.size(), 2u);
  CAF_CHECK(second->value);
}

CAF_TEST(a_server_that_closes_its_stdout_as_it_exits_has_exited) {
  server["tools/call"] = [](const auto& child, const auto&) { child.out(""); };
  make_client();
  auto result = call("one");
  pass(500ms);
  CAF_CHECK(result->pending());
  script->children[0].exit(7);
  pass(2s);
  CAF_CHECK(tells(result->failure, errc::server_failed, {"exited with code 7"}));
  CAF_CHECK(script->closed_inputs.empty());
}

CAF_TEST(a_server_that_closes_its_stdout_at_an_unknown_request_is_started_without_it) {
  server["server/discover"] = [](const auto& child, const auto&) { child.out(""); };
  make_client();
  auto result = call("one");
  pass(3s);
  CAF_CHECK(result->value);
  CAF_REQUIRE_EQUAL(script->children.size(), 2u);
  CAF_CHECK(methods_of(2).front() == "initialize");
}

CAF_TEST(restarts_are_bounded_and_possible_again_later) {
  server["tools/call"] = [](const auto& child, const auto&) { child.exit(1); };
  make_client();
  auto begin = sched.clock().now();
  for (std::size_t i = 1; i <= 6; ++i) {
    auto result = call("echo");
    pass(2s);
    CAF_REQUIRE(tells(result->failure, errc::server_failed, {"exited with code 1"}));
    CAF_REQUIRE_EQUAL(script->children.size(), i);
  }
  CAF_CHECK_EQUAL(status().state, "failed");
  auto refused = call("echo");
  CAF_CHECK(
      tells(refused->failure, errc::server_failed,
            {"\"srv\" failed 6 times in ten minutes", "is left alone for another", "exited"}));
  CAF_CHECK(tells(documents()->failure, errc::server_failed, {"left alone"}));
  server = legacy_methods();
  pass(std::chrono::duration_cast<std::chrono::milliseconds>(begin + 10min - sched.clock().now()) +
       200ms);
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(stop_ends_an_obedient_server_by_closing_its_input) {
  make_client();
  call("echo");
  auto stopped = stop();
  CAF_CHECK(stopped->value);
  CAF_CHECK(script->signals.empty());
  CAF_CHECK(script->killed_marks == (lines_t{"0123456789abcdef/handle-1"}));
}

CAF_TEST(stop_is_answered_at_once_when_nothing_runs) {
  make_client();
  CAF_CHECK(stop()->value);
}

CAF_TEST(stop_goes_from_closing_the_input_to_sigkill_within_four_seconds) {
  server["tools/call"] = ignore;
  script->input_closed = [](const auto&) {};
  script->signalled = [](const auto&, std::int32_t) {};
  make_client();
  auto running = call("echo");
  auto first = stop();
  auto second = stop();
  CAF_CHECK(tells(running->failure, errc::closed, {"being stopped"}));
  CAF_CHECK(tells(call("echo")->failure, errc::closed, {"being stopped"}));
  CAF_CHECK(tells(documents()->failure, errc::closed, {"being stopped"}));
  CAF_CHECK_EQUAL(status().state, "stopping");
  using signals_t = std::vector<std::pair<child_id, std::int32_t>>;
  pass(990ms);
  CAF_CHECK(script->signals.empty());
  pass(20ms);
  CAF_CHECK(script->signals == (signals_t{{1, 15}}));
  pass(1480ms);
  CAF_CHECK(script->signals == (signals_t{{1, 15}}));
  pass(20ms);
  CAF_CHECK(script->signals == (signals_t{{1, 15}, {1, 9}}));
  CAF_CHECK(first->pending());
  pass(1300ms);
  CAF_CHECK(first->value && second->value);
}

CAF_TEST(a_stop_during_the_start_ends_the_new_process) {
  server["server/discover"] = ignore;
  make_client();
  auto waiting = call("echo");
  auto stopped = stop();
  CAF_CHECK(tells(waiting->failure, errc::closed, {"being stopped"}));
  CAF_CHECK(stopped->value);
  CAF_CHECK(!script->children[0].alive());
}

CAF_TEST(an_exit_message_answers_callers_and_kills_the_server) {
  server["tools/call"] = ignore;
  make_client();
  auto running = call("echo");
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  consume_messages();
  CAF_CHECK(tells(running->failure, errc::closed, {"being stopped"}));
  CAF_CHECK(script->signals == (std::vector<std::pair<child_id, std::int32_t>>{{1, 9}}));
  CAF_CHECK_EQUAL(script->killed_marks.size(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
