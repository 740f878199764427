#define CAF_SUITE sandbox_session

#include "tests/support/sandbox_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// A sandbox whose interpreter is kept between runs.
struct fixture : sandbox_fixture {
  void run(const std::string& id, std::chrono::seconds keep = 900s) {
    sandbox_run what{id, "print(1)", {}, {}, run_budget, keep};
    self->send(box, execute_atom::value, what, owner);
    consume_messages();
  }

  /// The owner of the first run is replaced, as each run has its own.
  void change_owner() {
    first_owner = owner;
    log = std::make_shared<owner_log>();
    owner = sys.spawn(recording_owner, log);
  }

  /// One run is over, the interpreter waits.
  void rest() {
    boot_fully();
    run("run-1");
    begin("run-1");
    finish("run-1");
    CAF_REQUIRE(now() == phase::idle);
    CAF_REQUIRE_EQUAL(log->dones.size(), 1u);
    change_owner();
  }

  ~fixture() override { caf::anon_send_exit(first_owner, caf::exit_reason::kill); }

  static std::string output(const std::string& text) {
    return json({{"type", "stdout"}, {"data", text}}).dump();
  }

  sandbox_owner_actor first_owner;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_session_tests, fixture)

CAF_TEST(the_guest_is_told_that_other_runs_may_follow) {
  boot_fully();
  run("run-1");
  auto last = frames().back();
  CAF_CHECK(last["type"] == "execute");
  CAF_CHECK(last["session"] == true);
}

CAF_TEST(a_second_run_has_its_own_owner_and_events) {
  rest();
  run("run-2");
  begin("run-2");
  say(output("mine"));
  finish("run-2");
  CAF_CHECK_EQUAL(log->ups.size(), 1u);
  CAF_REQUIRE_EQUAL(log->outputs.size(), 1u);
  CAF_CHECK_EQUAL(log->outputs[0].bytes, "mine");
  CAF_CHECK_EQUAL(log->dones.size(), 1u);
  CAF_CHECK(now() == phase::idle);
  CAF_CHECK(runtime->destroyed.empty());
}

CAF_TEST(what_comes_between_two_runs_reaches_nobody_and_gets_no_credit_until_the_next) {
  rest();
  auto before = credit();
  auto line = output("between");
  say(line);
  say(R"({"type":"rpc_request","id":1,"payload":{"type":"list_servers"}})");
  CAF_CHECK_EQUAL(credit(), before);
  run("run-2");
  CAF_CHECK(credit() > before + line.size());
  say(output("late"));
  begin("run-2");
  CAF_CHECK(log->outputs.empty() && log->calls.empty());
  say(output("mine"));
  CAF_CHECK_EQUAL(log->outputs.size(), 1u);
}

CAF_TEST(credit_for_what_the_owner_had_not_dealt_with_is_given_when_the_run_ends) {
  boot_fully();
  run("run-1");
  begin("run-1");
  auto before = credit();
  auto line = output("x");
  say(line);
  CAF_CHECK_EQUAL(credit(), before);
  finish("run-1");
  CAF_CHECK(credit() >= before + line.size() + 1);
}

CAF_TEST(the_death_of_the_first_owner_after_its_run_means_nothing) {
  rest();
  run("run-2");
  begin("run-2");
  caf::anon_send_exit(first_owner, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(now() == phase::running);
  kill_owner();
  let_go();
  CAF_CHECK(gone());
}

CAF_TEST(an_interpreter_that_nobody_uses_ends) {
  rest();
  pass(899s);
  CAF_CHECK(now() == phase::idle);
  pass(2s);
  let_go();
  CAF_CHECK(cleaned_up());
}

CAF_TEST(time_that_passed_in_a_run_does_not_count_as_idle) {
  rest();
  pass(800s);
  run("run-2");
  begin("run-2");
  pass(200s);
  CAF_CHECK(now() == phase::running);
  finish("run-2");
  pass(800s);
  CAF_CHECK(now() == phase::idle);
}

CAF_TEST(a_container_that_ends_while_it_rests_is_removed) {
  rest();
  exit(137, 0);
  let_go();
  CAF_CHECK(cleaned_up());
  CAF_CHECK_EQUAL(log->ends(), 0u);
}

CAF_TEST(a_run_that_ends_it_is_the_last) {
  rest();
  run("run-2", 0s);
  begin("run-2");
  finish("run-2");
  CAF_CHECK(now() == phase::ending);
}

CAF_TEST(a_forged_end_of_an_earlier_run_ends_the_sandbox) {
  rest();
  run("run-2");
  begin("run-2");
  finish("run-1");
  CAF_CHECK(lost_once(errc::malformed));
}

CAF_TEST_FIXTURE_SCOPE_END()
