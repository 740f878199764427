#define CAF_SUITE sandbox_boot

#include "tests/support/sandbox_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string ready = R"({"type":"ready","python":"3.13.5","protocol":1})";
const std::string done = R"({"type":"done","id":"run-7","exitCode":0})";

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_boot_tests, sandbox_fixture)

CAF_TEST(the_code_is_sent_once_the_guest_is_ready_and_confined) {
  reach(phase::booting);
  CAF_REQUIRE_EQUAL(runtime->requests.size(), 1u);
  CAF_CHECK_EQUAL(runtime->requests[0].folder, "/run/folder");
  CAF_CHECK(volumes->made == std::vector<std::string>{runtime->requests[0].id});
  CAF_CHECK_EQUAL(runtime->confine.asked, 0u);
  runtime->confine.held = true;
  say(ready);
  CAF_CHECK_EQUAL(runtime->confine.asked, 1u);
  CAF_CHECK(frames().empty());
  CAF_CHECK(log->ups.empty());
  open(runtime->confine);
  CAF_CHECK(log->ups.empty());
  begin();
  CAF_REQUIRE_EQUAL(log->ups.size(), 1u);
  CAF_CHECK_EQUAL(log->ups[0].python, "3.13.5");
  auto got = frames();
  CAF_REQUIRE_EQUAL(got.size(), 2u);
  CAF_CHECK_EQUAL(got[0]["type"], "init");
  CAF_CHECK_EQUAL(got[0]["servers"][0]["name"], "files");
  CAF_CHECK_EQUAL(got[1]["type"], "execute");
  CAF_CHECK_EQUAL(got[1]["id"], "run-7");
  CAF_CHECK_EQUAL(got[1]["code"], "print(1)");
  CAF_CHECK_EQUAL(log->ends(), 0u);
}

CAF_TEST(a_guest_that_is_ready_before_the_driver_answered_runs) {
  reach(phase::creating);
  say(ready);
  CAF_CHECK_EQUAL(runtime->confine.asked, 0u);
  open(runtime->create);
  CAF_CHECK(now() == phase::running);
  CAF_CHECK_EQUAL(credit(), ready.size() + 1);
  begin();
  CAF_CHECK_EQUAL(log->ups.size(), 1u);
}

CAF_TEST(a_container_that_exits_before_the_driver_answered_is_lost_and_removed) {
  runtime->classify.answer = exit_verdict{{errc::unavailable, "no such image"}, 125};
  reach(phase::creating);
  guest().err("Error: no such image");
  exit(125);
  CAF_CHECK_EQUAL(log->ends(), 0u);
  open(runtime->create);
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK_EQUAL(log->losses[0].exit_code, 125);
  CAF_CHECK_EQUAL(runtime->diagnoses.at(0), "Error: no such image");
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_container_that_was_ready_and_exits_before_the_driver_answered_is_lost) {
  runtime->classify.answer = exit_verdict{{errc::runtime_lost, "killed"}, 137};
  reach(phase::creating);
  say(ready);
  exit(137);
  open(runtime->create);
  CAF_CHECK(lost_once(errc::runtime_lost));
  CAF_CHECK(log->ups.empty());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(without_a_folder_there_is_no_container) {
  volumes->run_folder.refuse_with(errc::unavailable, "disk full");
  execute();
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK_EQUAL(log->losses[0].reason.message, "disk full");
  CAF_CHECK(runtime->requests.empty());
  CAF_CHECK(gone());
}

CAF_TEST(a_container_that_cannot_be_made_leaves_no_folder) {
  runtime->create.refuse_with(errc::unavailable, "no engine");
  execute();
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK_EQUAL(log->losses[0].reason.message, "no engine");
  CAF_CHECK(runtime->destroyed.empty());
  CAF_CHECK(volumes->discarded == volumes->made);
  CAF_CHECK(gone());
}

CAF_TEST(limits_that_cannot_be_set_end_the_sandbox_before_code_runs) {
  runtime->confine.refuse_with(errc::unavailable, "no memory limit");
  reach(phase::booting);
  say(ready);
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK(frames().empty());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_booted_sandbox_waits_for_its_run_and_begins_it_at_once) {
  boot_fully();
  CAF_CHECK(now() == phase::idle);
  CAF_CHECK_EQUAL(runtime->confine.asked, 1u);
  CAF_CHECK(frames().empty());
  pass(1000s);
  CAF_CHECK(now() == phase::idle);
  hand_over("run-7");
  begin();
  CAF_REQUIRE_EQUAL(log->ups.size(), 1u);
  CAF_CHECK_EQUAL(log->ups[0].python, "3.13.5");
  auto got = frames();
  CAF_CHECK_EQUAL(got.back()["id"], "run-7");
  say(done);
  CAF_CHECK_EQUAL(log->dones.size(), 1u);
  exit(0);
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_sandbox_takes_one_run_only) {
  boot_fully();
  hand_over("run-7");
  auto sent = frames().size();
  hand_over("run-8");
  CAF_CHECK(lost_once(errc::closed));
  CAF_CHECK(now() == phase::running);
  CAF_CHECK_EQUAL(frames().size(), sent);
}

CAF_TEST(a_run_that_comes_to_a_sandbox_that_died_meanwhile_comes_back) {
  for (bool gone_already : {false, true}) {
    sandbox_fixture world;
    world.boot_fully();
    world.runtime->destroy.held = !gone_already;
    world.runtime->classify.answer = exit_verdict{{errc::runtime_lost, "killed"}, 137};
    world.exit(137);
    CAF_CHECK_EQUAL(world.gone(), gone_already);
    world.hand_over("run-7");
    // To one that is gone altogether, monitors tell.
    CAF_CHECK(gone_already ? world.log->ends() == 0 : world.lost_once(errc::closed));
    world.let_go();
    CAF_CHECK(world.cleaned_up());
  }
}

CAF_TEST(a_run_that_no_guest_began_comes_back_unless_its_word_may_be_lost) {
  struct end_case {
    std::int32_t code;
    std::int32_t signal;
    errc expected;
  };
  for (auto [code, signal, expected] :
       {end_case{137, 0, errc::closed}, end_case{0, 0, errc::closed},
        end_case{137, 9, errc::runtime_lost}, end_case{127, 0, errc::runtime_lost}}) {
    sandbox_fixture world;
    world.runtime->classify.answer = exit_verdict{{errc::runtime_lost, "killed"}, code};
    world.boot_fully();
    world.hand_over("run-7");
    world.exit(code, signal);
    CAF_CHECK(world.lost_once(expected));
    CAF_CHECK(world.cleaned_up());
  }
  // Once it has begun it is lost with its sandbox.
  runtime->classify.answer = exit_verdict{{errc::runtime_lost, "killed"}, 137};
  run_code();
  exit(137);
  CAF_CHECK(lost_once(errc::runtime_lost));
}

CAF_TEST(a_guest_that_does_not_begin_its_run_is_ended) {
  boot_fully();
  hand_over("run-7");
  pass(31s);
  CAF_CHECK(lost_once(errc::runtime_lost));
  CAF_CHECK(log->ups.empty());
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_run_is_begun_once_by_its_own_name_and_before_all_else) {
  for (const std::string line :
       {R"({"type":"started","id":"run-8"})", R"({"type":"started"})",
        R"({"type":"stdout","data":"x"})", R"({"type":"done","id":"run-7","exitCode":0})",
        R"({"type":"rpc_request","id":1,"payload":{"type":"nonsense"}})"}) {
    sandbox_fixture world;
    world.boot_fully();
    world.hand_over("run-7");
    world.say(line);
    CAF_CHECK(world.lost_once(errc::malformed));
    CAF_CHECK(world.log->ups.empty());
  }
  run_code();
  begin();
  CAF_CHECK(lost_once(errc::malformed));
}

CAF_TEST(a_guest_that_speaks_before_its_run_is_ended) {
  for (const std::string line :
       {R"({"type":"stdout","data":"x"})", R"({"type":"done","id":"","exitCode":0})",
        R"({"type":"rpc_request","id":1,"payload":{"type":"list_servers"}})",
        R"({"type":"ready","python":"3.13.5","protocol":1})"}) {
    sandbox_fixture world;
    world.boot_fully();
    world.say(line);
    CAF_CHECK(world.cleaned_up());
  }
}

CAF_TEST(whoever_asked_for_a_boot_is_told_how_it_went) {
  for (auto stuck : {phase::preparing, phase::creating, phase::booting, phase::confining}) {
    sandbox_fixture world;
    world.volumes->run_folder.held = stuck == phase::preparing;
    world.runtime->create.held = stuck == phase::creating;
    world.runtime->confine.held = stuck == phase::confining;
    world.boot();
    if (stuck == phase::confining) {
      world.say(ready);
    }
    world.end();
    world.let_go();
    CAF_CHECK(world.boot_failures == std::vector{errc::closed});
    CAF_CHECK(world.gone());
  }
  runtime->create.refuse_with(errc::unavailable, "no engine");
  boot();
  CAF_CHECK(boot_failures == std::vector{errc::unavailable});
}

CAF_TEST(a_sandbox_that_is_not_wanted_any_more_goes) {
  boot_fully();
  end();
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_boot_that_takes_too_long_is_told_once_and_cleaned_up) {
  for (auto stuck : {phase::preparing, phase::creating, phase::booting, phase::confining}) {
    sandbox_fixture world;
    world.reach(stuck);
    world.pass(89s);
    CAF_CHECK_EQUAL(world.log->ends(), 0u);
    world.pass(2s);
    CAF_CHECK(world.lost_once(errc::unavailable));
    CAF_CHECK(world.frames().empty());
    world.pass(120s);
    CAF_CHECK(world.gone());
    CAF_CHECK_EQUAL(world.runtime->destroyed.size(), stuck >= phase::booting ? 1u : 0u);
    CAF_CHECK_EQUAL(world.volumes->discarded.size(), stuck == phase::preparing ? 0u : 1u);
  }
}

CAF_TEST(time_spent_in_one_boot_phase_does_not_count_for_the_next) {
  reach(phase::creating);
  pass(60s);
  open(runtime->create);
  pass(60s);
  CAF_CHECK_EQUAL(log->ends(), 0u);
  say(ready);
  pass(20s);
  begin();
  pass(200s);
  CAF_CHECK(now() == phase::running);
  CAF_CHECK_EQUAL(log->ends(), 0u);
}

CAF_TEST(a_guest_is_ready_once) {
  for (auto when : {phase::creating, phase::confining, phase::running}) {
    sandbox_fixture world;
    world.reach(when);
    if (when == phase::creating) {
      world.say(ready);
    }
    world.say(ready);
    world.let_go();
    CAF_CHECK(world.lost_once(errc::malformed));
    CAF_CHECK(world.cleaned_up());
  }
}

CAF_TEST(frames_and_garbage_before_the_code_runs_end_the_sandbox) {
  for (auto when : {phase::creating, phase::booting, phase::confining}) {
    for (const auto& line : {std::string{R"({"type":"stdout","data":"x"})"}, done,
                             std::string{"Traceback (most recent call last):"},
                             std::string{R"({"type":"rpc_request","id":1,"payload":{}})"}}) {
      sandbox_fixture world;
      world.reach(when);
      auto start = world.credit();
      world.say(line);
      world.let_go();
      CAF_CHECK(world.lost_once(errc::malformed));
      CAF_CHECK(world.log->ups.empty());
      CAF_CHECK(world.frames().empty());
      CAF_CHECK(world.cleaned_up());
      CAF_CHECK_EQUAL(world.credit() - start, line.size() + 1);
    }
  }
}

CAF_TEST(an_end_in_any_phase_removes_all_and_tells_nothing_more) {
  for (auto when : {phase::preparing, phase::creating, phase::booting, phase::confining,
                    phase::running, phase::ending, phase::destroying}) {
    for (bool by_death : {false, true}) {
      sandbox_fixture world;
      world.reach(when);
      auto told = world.log->ends() + world.log->ups.size();
      auto frames = world.frames().size();
      world.runtime->destroy.held = true;
      by_death ? world.kill_owner() : world.end();
      world.let_go();
      world.pass(3s);
      CAF_CHECK_EQUAL(world.frames().size(), frames);
      CAF_CHECK_EQUAL(world.log->ends() + world.log->ups.size(), told);
      CAF_CHECK(world.gone());
      CAF_CHECK_EQUAL(world.runtime->destroyed.size(), when == phase::preparing ? 0u : 1u);
      CAF_CHECK(world.volumes->discarded == world.volumes->made);
    }
  }
}

CAF_TEST(a_sandbox_that_was_given_nothing_ends_at_once) {
  make_box();
  end();
  CAF_CHECK(gone());
  CAF_CHECK(volumes->made.empty());
}

CAF_TEST(a_driver_that_dies_is_a_loss_and_keeps_no_sandbox_alive) {
  for (auto when : {phase::creating, phase::confining}) {
    sandbox_fixture world;
    world.reach(when);
    caf::anon_send_exit(world.driver, caf::exit_reason::kill);
    world.consume_messages();
    // What it owed an answer to waits for its deadline; what is asked later fails at once.
    world.pass(200s);
    CAF_CHECK(world.lost_once(errc::unavailable));
    CAF_CHECK(world.gone());
    CAF_CHECK(world.volumes->discarded == world.volumes->made);
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
