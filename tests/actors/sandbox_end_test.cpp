#define CAF_SUITE sandbox_end

#include "tests/support/sandbox_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string done = R"({"type":"done","id":"run-7","exitCode":3})";
const std::string output = R"({"type":"stdout","data":"x"})";

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_end_tests, sandbox_fixture)

CAF_TEST(code_that_ended_by_itself_leaves_a_guest_that_is_asked_to_exit) {
  run_code();
  say(done + "\n" + output + "\nnot json");
  CAF_REQUIRE_EQUAL(log->dones.size(), 1u);
  CAF_CHECK_EQUAL(log->dones[0].exit_code, 3);
  CAF_CHECK(log->outputs.empty());
  auto last = frames().back();
  CAF_CHECK_EQUAL(last["type"], "shutdown");
  CAF_CHECK(processes->closed_inputs == std::vector<child_id>{1});
  CAF_CHECK(now() == phase::ending);
  CAF_CHECK(runtime->destroyed.empty());
  say(output);
  exit(0);
  CAF_CHECK_EQUAL(log->ends(), 1u);
  CAF_CHECK(log->outputs.empty());
  CAF_CHECK(runtime->exits.empty());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_guest_that_does_not_exit_is_removed_after_its_grace) {
  run_code();
  say(done);
  pass(1000ms);
  CAF_CHECK(runtime->destroyed.empty());
  pass(1000ms);
  CAF_CHECK_EQUAL(log->ends(), 1u);
  CAF_CHECK(cleaned_up());
}

CAF_TEST(an_exit_after_the_grace_removes_nothing_twice) {
  run_code();
  say(done);
  runtime->destroy.held = true;
  pass(2s);
  exit(137, 9);
  end();
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 1u);
  open(runtime->destroy);
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_shutdown_frame_that_the_budget_refuses_removes_the_container_once) {
  run_code();
  processes->input_blocked = true;
  state().out.emplace(1000, std::make_shared<memory_budget>(1));
  runtime->destroy.held = true;
  say(done);
  pass(5s);
  CAF_CHECK_EQUAL(log->ends(), 1u);
  CAF_CHECK_EQUAL(log->dones.size(), 1u);
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 1u);
  open(runtime->destroy);
  CAF_CHECK(cleaned_up());
}

CAF_TEST(the_driver_tells_why_a_container_ended) {
  const std::vector<exit_verdict> verdicts = {{{errc::none, ""}, 7},
                                              {{errc::out_of_memory, "too much"}, 137},
                                              {{errc::runtime_lost, "killed"}, 137},
                                              {{errc::unavailable, "engine"}, 125}};
  for (const auto& verdict : verdicts) {
    for (auto when : {phase::booting, phase::confining, phase::running}) {
      sandbox_fixture world;
      world.runtime->classify.answer = verdict;
      world.reach(when);
      world.exit(verdict.exit_code);
      CAF_CHECK(world.lost_once(verdict.reason.code));
      CAF_CHECK_EQUAL(world.log->losses.at(0).reason.message, verdict.reason.message);
      CAF_CHECK_EQUAL(world.log->losses.at(0).exit_code, verdict.exit_code);
      CAF_CHECK_EQUAL(world.runtime->exits.at(0).exit_code, verdict.exit_code);
      world.let_go();
      CAF_CHECK_EQUAL(world.log->ends(), 1u);
      CAF_CHECK(world.cleaned_up());
    }
  }
}

CAF_TEST(output_written_before_an_exit_arrives_before_its_loss) {
  run_code();
  guest().line(output);
  guest().exit(1);
  consume_messages();
  CAF_CHECK_EQUAL(log->outputs.size(), 1u);
  CAF_CHECK(lost_once(errc::none));
}

CAF_TEST(an_end_that_cannot_be_explained_is_a_loss_all_the_same) {
  runtime->classify.refuse_with(errc::timeout, "no answer");
  run_code();
  exit(1);
  CAF_CHECK(lost_once(errc::timeout));
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_driver_that_never_explains_is_waited_for_within_bounds) {
  runtime->classify.held = true;
  run_code();
  exit(1);
  pass(59s);
  CAF_CHECK_EQUAL(log->ends(), 0u);
  pass(2s);
  CAF_CHECK(lost_once(errc::timeout));
  CAF_CHECK(cleaned_up());
}

CAF_TEST(an_owner_that_leaves_while_the_exit_is_explained_hears_nothing) {
  runtime->classify.held = true;
  run_code();
  exit(1);
  end();
  open(runtime->classify);
  CAF_CHECK_EQUAL(log->ends(), 0u);
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_container_that_cannot_be_removed_is_tried_again_and_then_left) {
  runtime->destroy.refuse_with(errc::unavailable, "busy");
  run_code();
  end();
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 3u);
  CAF_CHECK(volumes->discarded == volumes->made);
  CAF_CHECK(gone());
}

CAF_TEST(a_second_removal_that_works_is_enough) {
  runtime->destroy.held = true;
  run_code();
  end();
  runtime->destroy.refuse_with(errc::unavailable, "busy");
  runtime->destroy.release();
  consume_messages();
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 2u);
  CAF_CHECK(volumes->discarded.empty());
  runtime->destroy.answer = caf::ok_atom::value;
  open(runtime->destroy);
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 2u);
  CAF_CHECK(volumes->discarded == volumes->made);
  CAF_CHECK(gone());
}

CAF_TEST(a_driver_that_never_removes_keeps_no_sandbox_for_ever) {
  run_code();
  runtime->destroy.held = true;
  end();
  pass(200s);
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 3u);
  CAF_CHECK(gone());
}

CAF_TEST(a_folder_that_cannot_be_removed_keeps_no_sandbox) {
  for (bool held : {false, true}) {
    sandbox_fixture world;
    world.volumes->discard.held = held;
    world.volumes->discard.refuse_with(errc::internal, "busy");
    world.run_code();
    world.end();
    world.pass(61s);
    CAF_CHECK(world.gone());
  }
}

CAF_TEST(a_broken_protocol_and_an_exit_make_one_loss) {
  run_code();
  guest().line("not json");
  guest().exit(1);
  consume_messages();
  CAF_CHECK(lost_once(errc::malformed));
  CAF_CHECK(runtime->exits.empty());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(an_end_gives_back_the_credit_of_what_nobody_will_deal_with) {
  runtime->destroy.held = true;
  run_code();
  auto start = credit();
  say(output);
  say(output);
  CAF_CHECK_EQUAL(credit(), start);
  end();
  CAF_CHECK_EQUAL(credit() - start, 2 * (output.size() + 1));
  acknowledge(2);
  say(output);
  CAF_CHECK_EQUAL(credit() - start, 3 * (output.size() + 1));
}

CAF_TEST(an_end_between_frames_gives_back_their_credit_once) {
  runtime->destroy.held = true;
  run_code();
  auto start = credit();
  auto text = output + "\n" + done + "\n" + output + "\n" + output.substr(0, 5);
  say_bytes(output.substr(0, 7));
  say_bytes(output.substr(7) + "\n" + text);
  acknowledge(5);
  say_bytes("rest\n");
  CAF_CHECK_EQUAL(credit() - start, output.size() + 1 + text.size() + 5);
  CAF_CHECK_EQUAL(log->ends(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
