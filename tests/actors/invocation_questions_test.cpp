#define CAF_SUITE invocation_questions

#include "tests/support/invocation_fixture.hpp"

/// What servers ask and tell in the middle of a run's calls, and the run's clock meanwhile.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// The client behind a run; what it is asked waits for the test.
struct client_log {
  std::vector<std::string> told;
  std::vector<client_question> questions;
  gate<std::string> answers;
};

struct client_behind_state {
  explicit client_behind_state(run_observer_actor::pointer) {}
  static inline const char* name = "client-behind";
};

run_observer_actor::behavior_type
client_behind(run_observer_actor::stateful_pointer<client_behind_state> self,
              std::shared_ptr<client_log> log) {
  return {
      [log](const run_progress& step) { log->told.push_back(step.message); },
      [self, log](const client_question& question) {
        log->questions.push_back(question);
        return log->answers.ask(self);
      },
  };
}

struct questions_fixture : invocation_fixture {
  questions_fixture() {
    client->answers.held = true;
    client->answers.answer = R"({"action":"accept"})";
    observer = sys.spawn(client_behind, client);
    request.observer = observer;
    request.timeout = 30s;
    files->call.held = true;
  }

  ~questions_fixture() override {
    for (const auto& actor : askers) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
    caf::anon_send_exit(observer, caf::exit_reason::kill);
    consume_messages();
    client->answers.pending.clear();
  }

  /// The server of the call asks; what becomes of it.
  std::shared_ptr<std::vector<expected<std::string>>> ask_in(std::uint64_t call) {
    auto results = std::make_shared<std::vector<expected<std::string>>>();
    askers.push_back(sys.spawn([=, run = run](caf::event_based_actor* asking) {
      asking
          ->request(run, caf::infinite,
                    server_question{call, "elicitation/create", R"({"message":"Who?"})"})
          .then([=](const std::string& result) { results->emplace_back(result); },
                [=](const caf::error& reason) {
                  results->push_back(tl::unexpected(from_caf(reason, "test")));
                });
    }));
    consume_messages();
    return results;
  }

  std::shared_ptr<client_log> client = std::make_shared<client_log>();
  run_observer_actor observer;
  std::vector<caf::actor> askers;
};

errc code_of(const std::shared_ptr<std::vector<expected<std::string>>>& results) {
  return results->size() == 1 && !results->front() ? results->front().error().code : errc::none;
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_questions_tests, questions_fixture)

CAF_TEST(a_question_goes_to_the_client_with_run_and_server) {
  start_code();
  call(1, "files", "read-file");
  auto result = ask_in(files->calls[0].id);
  CAF_REQUIRE_EQUAL(client->questions.size(), 1u);
  const auto& question = client->questions[0];
  CAF_CHECK_EQUAL(question.run, "run-7");
  CAF_CHECK_EQUAL(question.server, "files");
  CAF_CHECK_EQUAL(question.method, "elicitation/create");
  CAF_CHECK_EQUAL(question.params, R"({"message":"Who?"})");
  CAF_CHECK(question.due == deadline::at(sched.clock().now() + env->bounds.question_time));
  open(client->answers);
  CAF_REQUIRE_EQUAL(result->size(), 1u);
  CAF_CHECK((*result)[0] == R"({"action":"accept"})");
}

CAF_TEST(the_clock_stands_still_while_the_client_is_asked) {
  start_code();
  call(1, "files", "read-file");
  pass(20s);
  auto result = ask_in(files->calls[0].id);
  pass(200s);
  CAF_CHECK(answers.empty());
  // What is called meanwhile has the time that the run has left.
  call(2, "files", "write-file");
  CAF_CHECK(files->calls[1].due == deadline::at(sched.clock().now() + 10s));
  open(client->answers);
  CAF_CHECK_EQUAL(result->size(), 1u);
  pass(9500ms);
  CAF_CHECK(answers.empty());
  pass(1s);
  CAF_CHECK(over(run_status::timeout));
  CAF_CHECK(answers[0].duration_ms >= 230'000);
}

CAF_TEST(questions_that_overlap_stop_it_once) {
  start_code();
  call(1, "files", "read-file");
  ask_in(files->calls[0].id);
  pass(10s);
  ask_in(files->calls[0].id);
  pass(10s);
  open(client->answers);
  pass(29500ms);
  CAF_CHECK(answers.empty());
  pass(1s);
  CAF_CHECK(over(run_status::timeout));
}

CAF_TEST(it_stands_still_for_so_long_and_no_longer) {
  start_code();
  call(1, "files", "read-file");
  auto first = ask_in(files->calls[0].id);
  pass(302s);
  CAF_CHECK(code_of(first) == errc::timeout);
  auto second = ask_in(files->calls[0].id);
  CAF_CHECK(code_of(second) == errc::limit);
  CAF_CHECK_EQUAL(client->questions.size(), 1u);
  pass(31s);
  CAF_CHECK(over(run_status::timeout));
}

CAF_TEST(the_end_of_the_run_is_told_to_who_asks) {
  start_code();
  call(1, "files", "read-file");
  auto result = ask_in(files->calls[0].id);
  cancel();
  CAF_CHECK(over(run_status::cancelled));
  CAF_CHECK(code_of(result) == errc::closed);
}

CAF_TEST(without_a_client_nobody_is_asked) {
  request.observer = nullptr;
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(code_of(ask_in(files->calls[0].id)) == errc::unavailable);
}

CAF_TEST(only_a_call_that_goes_on_can_ask) {
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(code_of(ask_in(files->calls[0].id + 1)) == errc::closed);
  open(files->call);
  CAF_CHECK(code_of(ask_in(files->calls[0].id)) == errc::closed);
  CAF_CHECK(client->questions.empty());
}

CAF_TEST(a_refusal_of_the_client_is_handed_back) {
  start_code();
  call(1, "files", "read-file");
  client->answers.refuse_with(errc::denied, "the user said no");
  client->answers.held = false;
  CAF_CHECK(code_of(ask_in(files->calls[0].id)) == errc::denied);
}

CAF_TEST(progress_of_calls_is_told_a_few_times_a_second) {
  start_code();
  call(1, "files", "read-file");
  auto id = files->calls[0].id;
  client->told.clear();
  tell(tool_progress{id, 1, 4, "reading"});
  tell(tool_progress{id + 5, 1, 4, "somebody else's"});
  CAF_REQUIRE_EQUAL(client->told.size(), 1u);
  CAF_CHECK_EQUAL(client->told[0], "files/read-file: 1 of 4, reading");
  for (int i = 0; i < 1000; ++i) {
    tell(tool_progress{id, 2.0 + i, 0, ""});
  }
  CAF_CHECK_EQUAL(client->told.size(), 1u);
  pass(1s);
  CAF_REQUIRE_EQUAL(client->told.size(), 2u);
  CAF_CHECK_EQUAL(client->told[1], "files/read-file: 1001");
  tell(tool_progress{id, 5000, 0, ""});
  CAF_CHECK_EQUAL(client->told.size(), 3u);
}

CAF_TEST(the_code_gives_up_on_one_call_alone) {
  start_code();
  call(1, "files", "read-file");
  call(2, "files", "write-file");
  auto credit = sandbox->credit;
  tell(guest_cancel{1});
  CAF_CHECK(files->cancelled == std::vector<std::uint64_t>{files->calls[0].id});
  CAF_CHECK_EQUAL(sandbox->credit, credit + 1);
  tell(guest_cancel{3});
  CAF_CHECK_EQUAL(files->cancelled.size(), 1u);
  files->call.refuse_with(errc::cancelled, "cancelled by the caller");
  open(files->call);
  CAF_CHECK(refused(1, errc::cancelled));
  call(1, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 3u);
}

CAF_TEST(the_code_gives_up_on_a_call_whose_server_starts) {
  files->documents.held = true;
  start_code();
  call(1, "files", "read-file");
  call(2, "files", "read-file");
  tell(guest_cancel{1});
  CAF_CHECK(refused(1, errc::cancelled));
  files->call.held = false;
  open(files->documents);
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  CAF_CHECK(!unanswered(2));
}

CAF_TEST(the_code_gives_up_on_a_call_whose_arguments_are_looked_at) {
  auto script = std::make_shared<library_script>();
  script->answers.held = true;
  script->answers.answer = "";
  script_library(script);
  start_code();
  call(1, "files", "read-file", R"({"path":")" + std::string(mebibyte, 'x') + "\"}");
  CAF_CHECK_EQUAL(script->asked.size(), 1u);
  tell(guest_cancel{1});
  open(script->answers);
  CAF_CHECK(refused(1, errc::cancelled));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(the_clock_of_a_patient_run_stands_still_while_its_code_waits_for_a_server_to_start) {
  request.patient = true;
  files->documents.held = true;
  auto began = sched.clock().now();
  start_code();
  pass(10s);
  call(1, "files", "read-file");
  call(2, "files", "read-file");
  pass(50s);
  CAF_CHECK(answers.empty());
  open(files->documents);
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
  pass(19500ms);
  CAF_CHECK(answers.empty());
  pass(1s);
  CAF_CHECK(over(run_status::timeout));
  // As long as the server may take to start and to list its tools.
  CAF_CHECK(files->deadlines[0] == deadline::at(began + 120s));
}

CAF_TEST(tools_that_came_while_the_run_goes_on_can_be_called) {
  files->call.held = false;
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(!response(1).is_null());
  auto old = *files->documents.answer;
  auto changed = std::make_shared<server_documents>(*old);
  changed->outdated = {};
  changed->tools.push_back(tool_named("new-tool", "new_tool"));
  call(2, "files", "new-tool");
  CAF_CHECK(refused(2, errc::not_found));
  old->outdated.set();
  files->documents.answer = documents_ptr{changed};
  call(3, "files", "new-tool");
  CAF_CHECK(!response(3).is_null());
  CAF_CHECK_EQUAL(files->deadlines.size(), 2u);
  call(4, "files", "new_tool");
  CAF_CHECK(!response(4).is_null());
  CAF_CHECK_EQUAL(files->deadlines.size(), 2u);
  // One that changes all the time is asked once a call.
  changed->outdated.set();
  call(5, "files", "new_tool");
  CAF_CHECK(!response(5).is_null());
  CAF_CHECK_EQUAL(files->deadlines.size(), 3u);
}

CAF_TEST_FIXTURE_SCOPE_END()
