#define CAF_SUITE invocation_session

#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// A run in a session.
struct fixture : invocation_fixture {
  fixture() { request.session = session_lease{"handle", 3, {"files"}, {}}; }

  /// The run goes on in an interpreter that ran code before.
  void continue_session() { request.session->sandbox = box; }

  /// Was the session handed back once, with the interpreter or as lost?
  bool released(bool kept) const {
    return sessions->released.size() == 1 && sessions->released[0].handle == "handle" &&
           sessions->released[0].lease == 3 && sessions->released[0].kept == kept;
  }

  bool says(const std::string& text) const {
    return answers.size() == 1 && answers[0].failure &&
           answers[0].failure->message.find(text) != std::string::npos;
  }
};

guest_done done_with(std::int32_t exit_code) {
  guest_done done;
  done.id = "run-7";
  done.exit_code = exit_code;
  return done;
}

guest_done interrupted() {
  auto done = done_with(130);
  done.exception = guest_exception{"KeyboardInterrupt", "", "Traceback"};
  return done;
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_session_tests, fixture)

CAF_TEST(the_first_run_takes_any_sandbox_and_hands_it_back) {
  start_code();
  CAF_REQUIRE_EQUAL(sandbox->runs.size(), 1u);
  CAF_CHECK(sandbox->runs[0].keep == env->config->session_idle);
  CAF_CHECK_EQUAL(booted_would_do.size(), 1u);
  tell(done_with(0));
  CAF_CHECK(answered(run_status::success));
  CAF_CHECK_EQUAL(answers[0].session, "handle");
  CAF_CHECK(released(true));
  CAF_CHECK_EQUAL(sandbox->ends, 0);
}

CAF_TEST(a_later_run_goes_on_in_the_same_sandbox) {
  continue_session();
  start_code();
  CAF_CHECK_EQUAL(sandbox->runs.size(), 1u);
  CAF_CHECK(booted_would_do.empty());
  tell(done_with(1));
  CAF_CHECK(answered(run_status::error));
  CAF_CHECK_EQUAL(answers[0].session, "handle");
  CAF_CHECK(released(true));
}

CAF_TEST(a_reset_ends_the_old_interpreter_when_the_run_begins) {
  auto old_log = std::make_shared<sandbox_log>();
  sandbox_actor old = sys.spawn(scripted_sandbox, old_log);
  request.session->sandbox = old;
  request.session->reset = true;
  start_code();
  CAF_CHECK_EQUAL(old_log->ends, 1);
  CAF_CHECK(old_log->runs.empty());
  CAF_CHECK_EQUAL(sandbox->runs.size(), 1u);
  CAF_CHECK_EQUAL(sessions->begun, 1);
  tell(done_with(0));
  CAF_CHECK(released(true));
  caf::anon_send_exit(old, caf::exit_reason::kill);
}

CAF_TEST(a_session_that_breaks_before_the_run_begins_is_told_to_be_lost) {
  continue_session();
  start();
  tell(sandbox_lost{{errc::malformed, "its frame channel was misused"}, 0});
  CAF_CHECK(answered(run_status::error));
  CAF_CHECK(says("the session and what it held are lost"));
  CAF_CHECK(released(false));
}

CAF_TEST(a_run_that_takes_too_long_is_interrupted_and_the_session_lives_on) {
  continue_session();
  start_code();
  pass(30s);
  CAF_CHECK_EQUAL(sandbox->interrupts, 1);
  CAF_CHECK(answers.empty());
  tell(guest_output{stream_id::out, "bye"});
  tell(interrupted());
  CAF_CHECK(answered(run_status::timeout));
  CAF_CHECK(says("the session goes on"));
  CAF_CHECK_EQUAL(answers[0].session, "handle");
  CAF_CHECK_EQUAL(answers[0].out.head, "bye");
  CAF_CHECK(released(true));
  CAF_CHECK_EQUAL(sandbox->ends, 0);
}

CAF_TEST(code_that_goes_on_after_the_interrupt_is_killed_and_the_session_lost) {
  continue_session();
  start_code();
  pass(30s);
  pass(2s);
  CAF_CHECK(answered(run_status::timeout));
  CAF_CHECK(says("was killed; the session and what it held are lost"));
  CAF_CHECK(answers[0].session.empty());
  CAF_CHECK(released(false));
  CAF_CHECK_EQUAL(sandbox->ends, 1);
}

CAF_TEST(a_cancelled_run_is_interrupted_and_not_killed_by_its_own_deadline) {
  continue_session();
  request.timeout = 1s;
  start_code();
  pass(500ms);
  cancel();
  cancel();
  CAF_CHECK_EQUAL(sandbox->interrupts, 1);
  pass(1s);
  CAF_CHECK(answers.empty());
  tell(interrupted());
  CAF_CHECK(answered(run_status::cancelled));
  CAF_CHECK(released(true));
}

CAF_TEST(a_new_session_whose_first_run_is_cancelled_while_it_boots_is_dropped) {
  start();
  cancel();
  CAF_CHECK(answered(run_status::cancelled));
  CAF_CHECK(released(false));
  CAF_CHECK_EQUAL(sandbox->ends, 1);
}

CAF_TEST(a_run_that_is_cancelled_before_its_session_takes_it_is_interrupted) {
  continue_session();
  start();
  cancel();
  CAF_CHECK_EQUAL(sandbox->interrupts, 1);
  CAF_CHECK(answers.empty());
  tell(sandbox_up{"3.13.5"});
  tell(interrupted());
  CAF_CHECK(answered(run_status::cancelled));
  CAF_CHECK(released(true));
}

CAF_TEST(a_session_that_ended_before_the_run_began_gets_no_empty_interpreter) {
  continue_session();
  start();
  tell(sandbox_lost{{errc::closed, "it died"}, 0});
  CAF_CHECK(answered(run_status::session_lost));
  CAF_CHECK_EQUAL(answers[0].failure->message, no_such_session().message);
  CAF_CHECK(answers[0].session.empty());
  CAF_CHECK(released(false));
  CAF_CHECK(booted_would_do.empty());
}

CAF_TEST(a_process_that_ends_itself_loses_the_session_also_with_status_zero) {
  for (int status : {0, 5}) {
    fixture world;
    world.continue_session();
    world.start_code();
    world.tell(sandbox_lost{{errc::none, {}}, status});
    CAF_CHECK(world.answered(run_status::error));
    CAF_CHECK(world.says("the session and what it held are lost"));
    CAF_CHECK_EQUAL(world.answers[0].exit_code.value_or(-1), status);
    CAF_CHECK(world.released(false));
  }
}

CAF_TEST(calls_while_the_code_is_interrupted_are_refused) {
  continue_session();
  start_code();
  pass(30s);
  call(1, "files", "read_file");
  CAF_REQUIRE_EQUAL(sandbox->refusals.size(), 1u);
  CAF_CHECK(sandbox->refusals[0].second.code == errc::closed);
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(a_session_has_no_more_rights_than_when_it_was_made) {
  auto then = std::make_shared<server_catalogue>(*catalogue);
  then->rules.deny = {"files/write-file"};
  catalogue->rules.deny = {};
  request.session->made_under = then;
  continue_session();
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(refused(1, errc::denied, {"write-file"}));
  call(2, "files", "delete-all");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
