#define CAF_SUITE idle_sandbox

#include "tests/support/sandbox_fixture.hpp"

/// A kept interpreter is held between its runs, and let go before anything is sent to it or it is
/// removed.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

using event = scripted_brake::event;

struct fixture : sandbox_fixture {
  void run(const std::string& id, std::chrono::seconds keep = 900s) {
    sandbox_run what{id, "print(1)", {}, {}, run_budget, keep};
    self->send(box, execute_atom::value, what, owner);
    consume_messages();
  }

  void rest() {
    boot_fully();
    run("run-1");
    begin("run-1");
    CAF_REQUIRE(brake->events.empty());
    finish("run-1");
    CAF_REQUIRE(now() == phase::idle);
  }
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(idle_sandbox_tests, fixture)

CAF_TEST(an_interpreter_is_held_when_its_run_has_ended_and_let_go_before_the_next_is_sent) {
  rest();
  // `init` and `execute` of the first run.
  const std::vector<event> at_rest = {{true, 2, 0}};
  CAF_CHECK(brake->events == at_rest);
  run("run-2");
  const std::vector<event> again = {{true, 2, 0}, {false, 2, 0}};
  CAF_CHECK(brake->events == again);
  CAF_CHECK_EQUAL(frames().size(), 4u);
  begin("run-2");
  finish("run-2");
  CAF_CHECK(brake->holds());
  CAF_CHECK_EQUAL(brake->found.size(), 1u);
  CAF_CHECK_EQUAL(brake->released.back(), "/bulkhead-id");
}

CAF_TEST(a_run_that_waits_for_the_end_of_another_finds_the_interpreter_let_go) {
  boot_fully();
  run("run-1");
  begin("run-1");
  // The end of the first run and the next one are dealt with one after the other, in one go.
  guest().out("{\"type\":\"done\",\"id\":\"run-1\",\"exitCode\":0}\n");
  self->send(box, execute_atom::value, sandbox_run{"run-2", "2", {}, {}, run_budget, 900s}, owner);
  consume_messages();
  const std::vector<event> expected = {{true, 2, 0}, {false, 2, 0}};
  CAF_CHECK(brake->events == expected);
  CAF_CHECK_EQUAL(frames().size(), 4u);
  CAF_CHECK(now() == phase::running);
}

CAF_TEST(a_cancel_that_comes_too_late_wakes_nothing) {
  rest();
  self->send(box, interrupt_atom::value);
  self->send(box, respond_atom::value, std::uint64_t{1}, std::string{"{}"});
  consume_messages();
  CAF_CHECK(brake->holds());
  CAF_CHECK_EQUAL(frames().size(), 2u);
}

CAF_TEST(what_is_to_be_removed_is_let_go_first) {
  rest();
  end();
  const std::vector<event> expected = {{true, 2, 0}, {false, 2, 0}};
  CAF_CHECK(brake->events == expected);
  let_go();
  CAF_CHECK(cleaned_up());
}

CAF_TEST(so_is_what_was_idle_for_too_long) {
  rest();
  pass(899s);
  CAF_CHECK(brake->holds());
  pass(2s);
  const std::vector<event> expected = {{true, 2, 0}, {false, 2, 0}};
  CAF_CHECK(brake->events == expected);
  let_go();
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_container_that_dies_while_it_is_held_is_removed) {
  rest();
  exit(137, 0);
  let_go();
  CAF_CHECK(!brake->holds());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(one_that_cannot_be_let_go_takes_no_run_and_is_removed) {
  rest();
  brake->works = false;
  auto sent = frames().size();
  run("run-2");
  CAF_CHECK_EQUAL(frames().size(), sent);
  CAF_CHECK(log->losses.size() == 1 && log->losses[0].reason.code == errc::closed);
  let_go();
  CAF_CHECK(cleaned_up());
}

CAF_TEST(an_interpreter_that_is_not_kept_is_never_held) {
  boot_fully();
  run("run-1", 0s);
  begin("run-1");
  finish("run-1");
  CAF_CHECK(now() == phase::ending);
  CAF_CHECK(brake->events.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
