#define CAF_SUITE invocation_calls

#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(invocation_calls_tests, invocation_fixture)

CAF_TEST(a_tool_is_called_by_raw_name_or_alias_with_its_arguments_and_deadline) {
  start_code();
  files->call.answer = R"({"content":[{"type":"text","text":"hi"}]})";
  pass(10s);
  call(1, "files", "read-file", R"({"path":"a"})");
  call(2, "files", "read_file", R"({"path":"b"})");
  CAF_REQUIRE_EQUAL(files->calls.size(), 2u);
  CAF_CHECK_EQUAL(files->calls[0].tool, "read-file");
  CAF_CHECK_EQUAL(files->calls[0].arguments, R"({"path":"a"})");
  CAF_CHECK_EQUAL(files->calls[1].tool, "read-file");
  CAF_CHECK_EQUAL(files->calls[1].arguments, R"({"path":"b"})");
  CAF_CHECK(files->calls[0].id != files->calls[1].id);
  CAF_CHECK(files->calls[0].due == deadline::at(sched.clock().now() + 20s));
  CAF_CHECK(response(1)["content"][0]["text"] == "hi");
  CAF_CHECK(response(2)["content"][0]["text"] == "hi");
}

CAF_TEST(a_server_is_found_by_its_alias) {
  auto script = add_server("my-notes", "my_notes");
  auto documents = std::make_shared<server_documents>();
  documents->tools = {tool_named("add", "add")};
  script->documents.answer = documents_ptr{documents};
  script->call.answer = "{}";
  request.servers = {"files", "my-notes"};
  start_code();
  call(1, "my_notes", "add");
  call(2, "my-notes", "add");
  CAF_CHECK_EQUAL(script->calls.size(), 2u);
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(a_denied_tool_is_refused_by_its_raw_name_and_by_its_alias) {
  start_code();
  call(1, "files", "delete-all");
  CAF_CHECK(refused(1, errc::denied, {"delete-all", "files/delete-all"}));
  call(2, "files", "delete_all");
  CAF_CHECK(refused(2, errc::denied, {"delete-all", "files/delete-all"}));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(an_unknown_tool_is_refused_with_what_was_perhaps_meant) {
  start_code();
  call(1, "files", "read-fil");
  CAF_CHECK(refused(1, errc::not_found, {"read-fil", "read-file"}));
  call(2, "files", "");
  CAF_CHECK(refused(2, errc::not_found));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(servers_outside_the_run_are_refused_on_every_path) {
  start_code();
  std::uint64_t id = 0;
  for (auto kind : {guest_call_kind::list_tools, guest_call_kind::call_tool,
                    guest_call_kind::query_tool_docs, guest_call_kind::search_tool_docs}) {
    // The last two ask for what may be known without the server.
    auto asks =
        kind == guest_call_kind::query_tool_docs || kind == guest_call_kind::search_tool_docs;
    ask(++id, kind, "spare", "read-file");
    CAF_CHECK(refused(id, asks ? errc::not_found : errc::denied, {"spare", "servers="}));
    ask(++id, kind, "vault", "read-file");
    CAF_CHECK(refused(id, errc::not_found, {"vault", "files"}));
    ask(++id, kind, "nothing", "read-file");
    CAF_CHECK(refused(id, errc::not_found, {"nothing", "files"}));
  }
  CAF_CHECK(servers["spare"]->deadlines.empty());
  CAF_CHECK(servers["vault"]->deadlines.empty());
  CAF_CHECK(registry->asked == std::vector<std::string>{"files"});
}

CAF_TEST(lists_documents_and_searches_show_what_the_run_may_use) {
  start_code();
  ask(1, guest_call_kind::list_servers);
  CAF_REQUIRE_EQUAL(response(1).size(), 1u);
  CAF_CHECK(response(1)[0]["name"] == "files");
  ask(2, guest_call_kind::list_tools, "files");
  CAF_REQUIRE_EQUAL(response(2).size(), 2u);
  CAF_CHECK(response(2)[0]["name"] == "read-file");
  CAF_CHECK(response(2)[1]["name"] == "write-file");
  ask(3, guest_call_kind::query_tool_docs, "files");
  CAF_CHECK_EQUAL(response(3).size(), 2u);
  ask(4, guest_call_kind::query_tool_docs, "files", "write_file");
  CAF_REQUIRE_EQUAL(response(4).size(), 1u);
  CAF_CHECK(response(4)[0]["tool"] == "write-file");
  ask(5, guest_call_kind::query_tool_docs, "files", "delete-all");
  CAF_CHECK(refused(5, errc::not_found));
  ask(6, guest_call_kind::search_tool_docs, "", "text");
  CAF_CHECK_EQUAL(response(6)["tools"].size(), 2u);
  ask(7, guest_call_kind::search_tool_docs, "", "deletes all");
  const auto hits = response(7);
  for (const auto& hit : hits["tools"]) {
    CAF_CHECK(hit["tool"] != "delete-all");
  }
  ask(8, guest_call_kind::search_tool_docs, "files", "read");
  CAF_CHECK_EQUAL(response(8)["tools"].size(), 1u);
}

CAF_TEST(a_run_without_servers_reaches_none) {
  request.servers = {};
  start_code();
  ask(1, guest_call_kind::list_servers);
  CAF_CHECK(response(1) == json::array());
  ask(2, guest_call_kind::search_tool_docs, "", "text");
  CAF_CHECK(response(2)["tools"] == json::array());
  CAF_CHECK(response(2)["note"].get<std::string>().find("files, spare;") != std::string::npos);
  call(3, "files", "read-file");
  CAF_CHECK(refused(3, errc::denied));
  CAF_CHECK(registry->asked.empty());
}

CAF_TEST(a_run_whose_time_is_up_tells_what_it_waited_for) {
  for (bool starting : {true, false}) {
    invocation_fixture world;
    world.files->documents.held = starting;
    world.files->call.held = !starting;
    world.start_code();
    world.call(1, "files", "read-file");
    world.advance_time(31s);
    world.consume_messages();
    CAF_REQUIRE(world.answered(run_status::timeout));
    const auto& message = world.answers[0].failure->message;
    CAF_CHECK(message.find(starting ? "server \"files\", which was still starting"
                                    : "tool \"read-file\" of \"files\"") != std::string::npos);
  }
}

CAF_TEST(calls_before_the_documents_are_there_wait_for_them) {
  files->documents.held = true;
  start_code();
  call(1, "files", "read-file");
  ask(2, guest_call_kind::list_tools, "files");
  ask(3, guest_call_kind::search_tool_docs, "", "text");
  call(4, "files", "delete-all");
  ask(5, guest_call_kind::list_servers);
  CAF_CHECK(unanswered(1) && unanswered(2) && unanswered(3) && unanswered(4));
  CAF_CHECK_EQUAL(response(5).size(), 1u);
  CAF_CHECK_EQUAL(files->deadlines.size(), 1u);
  open(files->documents);
  CAF_CHECK(response(1).is_object());
  CAF_CHECK_EQUAL(response(2).size(), 2u);
  CAF_CHECK_EQUAL(response(3)["tools"].size(), 2u);
  CAF_CHECK(refused(4, errc::denied));
  CAF_CHECK_EQUAL(files->deadlines.size(), 1u);
}

CAF_TEST(a_server_that_fails_to_start_fails_its_calls_and_may_recover) {
  files->documents.held = true;
  auto good = files->documents.answer;
  start_code();
  call(1, "files", "read-file");
  ask(2, guest_call_kind::search_tool_docs, "", "text");
  files->documents.refuse_with(errc::server_failed, "it crashed");
  files->documents.release();
  consume_messages();
  CAF_CHECK(refused(1, errc::server_failed, {"it crashed"}));
  // An empty list would say that there is no such tool.
  CAF_CHECK(refused(2, errc::server_failed, {"it crashed"}));
  files->documents.answer = good;
  files->documents.held = false;
  call(3, "files", "read-file");
  CAF_CHECK(response(3).is_object());
}

CAF_TEST(a_server_that_failed_while_the_container_booted_is_told_and_tried_again) {
  auto good = files->documents.answer;
  files->documents.refuse_with(errc::server_failed, "it crashed");
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(refused(1, errc::server_failed, {"it crashed"}));
  files->documents.answer = good;
  call(2, "files", "read-file");
  CAF_CHECK(response(2).is_object());
}

CAF_TEST(a_server_that_is_silent_is_waited_for_no_longer_than_the_run) {
  files->documents.held = true;
  request.timeout = 20s;
  start();
  CAF_REQUIRE_EQUAL(files->deadlines.size(), 1u);
  CAF_CHECK(files->deadlines[0] == deadline::at(sched.clock().now() + 20s));
  pass(15s);
  tell(sandbox_up{"3.13.5"});
  call(1, "files", "read-file");
  pass(7s);
  CAF_CHECK(refused(1, errc::timeout));
  CAF_CHECK(answers.empty());
}

CAF_TEST(a_server_that_the_registry_does_not_hand_out_fails_its_calls) {
  registry->clients.erase("files");
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(refused(1, errc::not_found, {"no server files"}));
  CAF_CHECK(answers.empty());
}

CAF_TEST(a_call_that_fails_is_refused_with_the_reason) {
  start_code();
  files->call.refuse_with(errc::server_failed, "pipe broken");
  call(1, "files", "read-file");
  CAF_CHECK(refused(1, errc::server_failed, {"pipe broken"}));
  caf::anon_send_exit(registry->clients["files"], caf::exit_reason::kill);
  consume_messages();
  call(2, "files", "read-file");
  CAF_CHECK(refused(2, errc::internal, {"read-file"}));
}

CAF_TEST(one_call_more_than_the_limit_is_refused_until_another_is_answered) {
  files->call.held = true;
  start_code();
  for (std::uint64_t id = 1; id <= 32; ++id) {
    call(id, "files", "read-file");
  }
  CAF_CHECK_EQUAL(files->calls.size(), 32u);
  call(33, "files", "read-file");
  CAF_CHECK(refused(33, errc::limit, {"32"}));
  ask(34, guest_call_kind::list_servers);
  CAF_CHECK(refused(34, errc::limit));
  CAF_CHECK_EQUAL(files->calls.size(), 32u);
  files->call.release();
  consume_messages();
  call(35, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 33u);
  CAF_CHECK_EQUAL(sandbox->credit, 35u);
}

CAF_TEST(a_refused_call_is_over) {
  env->budget = std::make_shared<memory_budget>(1000);
  start_code();
  for (std::uint64_t id = 1; id <= 40; ++id) {
    call(id, "files", "delete-all", std::string(600, ' '));
    CAF_CHECK(refused(id, errc::denied));
  }
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  call(1, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
}

CAF_TEST(calls_that_wait_for_a_server_count_as_well) {
  files->documents.held = true;
  start_code();
  for (std::uint64_t id = 1; id <= 16; ++id) {
    call(id, "files", "read-file");
    ask(id + 16, guest_call_kind::search_tool_docs, "", "text");
  }
  call(33, "files", "read-file");
  CAF_CHECK(refused(33, errc::limit));
}

CAF_TEST(a_second_call_with_an_id_in_use_is_not_made) {
  files->call.held = true;
  start_code();
  call(1, "files", "read-file");
  call(1, "files", "write-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  CAF_CHECK(unanswered(1));
  open(files->call);
  CAF_CHECK(response(1).is_object());
  call(1, "files", "write-file");
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
}

CAF_TEST(arguments_are_charged_to_the_memory_budget_until_the_answer) {
  env->budget = std::make_shared<memory_budget>(1000);
  files->call.held = true;
  start_code();
  call(1, "files", "read-file", std::string(600, ' '));
  CAF_CHECK_EQUAL(env->budget->used(), 600u);
  call(2, "files", "read-file", std::string(600, ' '));
  CAF_CHECK(refused(2, errc::overloaded));
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  open(files->call);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  call(3, "files", "read-file", std::string(600, ' '));
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
}

CAF_TEST(calls_in_flight_are_cancelled_when_the_code_ends) {
  files->call.held = true;
  start_code();
  call(1, "files", "read-file", std::string(600, ' '));
  call(2, "files", "read-file");
  guest_done done;
  done.id = "run-7";
  tell(done);
  CAF_CHECK(over(run_status::success));
  CAF_CHECK(files->cancelled ==
            (std::vector<std::uint64_t>{files->calls[0].id, files->calls[1].id}));
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  open(files->call);
  CAF_CHECK(unanswered(1) && unanswered(2));
}

CAF_TEST(an_answered_call_is_not_cancelled) {
  start_code();
  call(1, "files", "read-file");
  pass(31s);
  CAF_CHECK(over(run_status::timeout));
  CAF_CHECK(files->cancelled.empty());
}

CAF_TEST(the_end_of_the_time_cancels_calls_before_they_time_out) {
  files->call.held = true;
  start_code();
  call(1, "files", "read-file");
  pass(31s);
  CAF_CHECK(over(run_status::timeout));
  CAF_CHECK_EQUAL(files->cancelled.size(), 1u);
}

CAF_TEST(a_call_before_the_code_runs_is_not_made) {
  start();
  call(1, "files", "read-file");
  CAF_CHECK(files->calls.empty());
  CAF_CHECK(unanswered(1));
}

CAF_TEST(what_the_configuration_takes_away_is_gone_at_the_next_call) {
  configured = std::make_shared<current_catalogue>(catalogue_ptr{catalogue});
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  reconfigure([](auto& next) { next.rules.deny.emplace_back("files/read-*"); });
  call(2, "files", "read-file");
  call(3, "files", "read_file");
  call(4, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"read-file", "now", "files/read-*"}));
  CAF_CHECK(refused(3, errc::denied, {"read_file", "now", "files/read-*"}));
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
  reconfigure([](auto& next) { next.rules.deny = {"files"}; });
  ask(5, guest_call_kind::list_tools, "files");
  call(6, "files", "write-file");
  CAF_CHECK(refused(5, errc::denied, {"files", "denied by policy now"}));
  CAF_CHECK(refused(6, errc::denied, {"files", "denied by policy now"}));
  reconfigure([](auto& next) { next.servers.clear(); });
  call(7, "files", "write-file");
  CAF_CHECK(refused(7, errc::denied, {"isn't configured any more"}));
  reconfigure([](auto& next) { next.rules.closed = "broken.json can't be read"; });
  call(8, "files", "write-file");
  CAF_CHECK(refused(8, errc::denied, {"broken.json can't be read"}));
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
}

CAF_TEST(what_the_configuration_gives_is_not_for_a_run_that_goes_on) {
  configured = std::make_shared<current_catalogue>(catalogue_ptr{catalogue});
  start_code();
  reconfigure([](auto& next) { next.rules.deny = {}; });
  call(1, "files", "delete-all");
  CAF_CHECK(refused(1, errc::denied, {"delete-all"}));
  call(2, "vault", "open");
  CAF_CHECK(refused(2, errc::not_found, {"vault"}));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
