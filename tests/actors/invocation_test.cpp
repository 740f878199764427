#define CAF_SUITE invocation

#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

guest_done done_with(std::int32_t code) {
  guest_done done;
  done.id = "run-7";
  done.exit_code = code;
  return done;
}

run_observer_actor::behavior_type
recording_progress(run_observer_actor::pointer, std::shared_ptr<std::vector<run_progress>> log) {
  return {[log](const run_progress& progress) { log->push_back(progress); },
          [](const client_question& question) -> caf::result<std::string> {
            return to_caf(errc::unavailable, question.method);
          }};
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_tests, invocation_fixture)

CAF_TEST(the_sandbox_gets_the_code_with_the_servers_asked_for_and_those_allowed) {
  start();
  CAF_REQUIRE_EQUAL(sandbox->runs.size(), 1u);
  const auto& given = sandbox->runs[0];
  CAF_CHECK_EQUAL(given.id, "run-7");
  CAF_CHECK_EQUAL(given.code, "print(1)");
  CAF_CHECK(given.servers == (std::vector<server_brief>{{"files", "files", "the server files"}}));
  CAF_CHECK(given.discovered ==
            (std::vector<server_brief>{{"files", "files", "the server files"},
                                       {"spare", "spare", "the server spare"}}));
  // Only what was asked for is started, and that at once.
  CAF_CHECK(registry->asked == std::vector<std::string>{"files"});
  CAF_CHECK_EQUAL(files->deadlines.size(), 1u);
}

CAF_TEST(a_denied_server_that_was_asked_for_is_not_given) {
  request.servers = {"files", "vault"};
  start();
  CAF_CHECK_EQUAL(sandbox->runs.at(0).servers.size(), 1u);
  CAF_CHECK(registry->asked == std::vector<std::string>{"files"});
  CAF_CHECK(servers["vault"]->deadlines.empty());
}

CAF_TEST(progress_and_answer_of_a_run_that_ends_well) {
  auto progress = std::make_shared<std::vector<run_progress>>();
  auto observer = sys.spawn(recording_progress, progress);
  request.observer = observer;
  start();
  CAF_CHECK(*progress == (std::vector<run_progress>{{"run-7", "booting"}}));
  pass(2s);
  tell(sandbox_up{"3.13.5"});
  CAF_CHECK_EQUAL(progress->size(), 2u);
  CAF_CHECK(progress->back() == (run_progress{"run-7", "running"}));
  tell(guest_output{stream_id::out, "hello"});
  tell(guest_output{stream_id::err, "careful"});
  pass(1s);
  auto done = done_with(0);
  done.result_repr = "42";
  done.result_json = "42";
  tell(done);
  CAF_REQUIRE(over(run_status::success));
  const auto& answer = answers[0];
  CAF_CHECK_EQUAL(answer.exit_code.value_or(-1), 0);
  CAF_CHECK_EQUAL(answer.out.head, "hello");
  CAF_CHECK_EQUAL(answer.err.head, "careful");
  CAF_CHECK_EQUAL(answer.result_repr.value_or(""), "42");
  CAF_CHECK_EQUAL(answer.result_json.value_or(""), "42");
  CAF_CHECK(answer.servers == std::vector<std::string>{"files"});
  CAF_CHECK_EQUAL(answer.duration_ms, 3000u);
  CAF_CHECK(!answer.failure);
  caf::anon_send_exit(observer, caf::exit_reason::kill);
}

CAF_TEST(an_exit_code_or_an_exception_is_an_error) {
  for (bool thrown : {false, true}) {
    invocation_fixture world;
    world.start_code();
    auto done = done_with(thrown ? 0 : 3);
    if (thrown) {
      done.exception = guest_exception{"ValueError", "bad", "Traceback"};
    }
    world.tell(done);
    CAF_REQUIRE(world.over(run_status::error));
    CAF_CHECK_EQUAL(world.answers[0].exit_code.value_or(-1), thrown ? 0 : 3);
    CAF_CHECK_EQUAL(world.answers[0].exception.has_value(), thrown);
  }
}

CAF_TEST(how_a_loss_is_told) {
  struct row {
    errc reason;
    std::int32_t exit_code;
    run_status status;
    errc failure; ///< internal: none
  };
  const std::vector<row> table = {
      {errc::none, 0, run_status::success, errc::internal},
      {errc::none, 7, run_status::error, errc::runtime_lost},
      {errc::out_of_memory, 137, run_status::out_of_memory, errc::out_of_memory},
      {errc::unavailable, 125, run_status::unavailable, errc::unavailable},
      {errc::runtime_lost, 137, run_status::error, errc::runtime_lost},
      {errc::malformed, 0, run_status::error, errc::malformed},
      {errc::too_large, 0, run_status::error, errc::too_large},
      {errc::overloaded, 0, run_status::error, errc::overloaded},
  };
  for (const auto& entry : table) {
    for (bool booted : {false, true}) {
      invocation_fixture world;
      booted ? world.start_code() : world.start();
      world.tell(sandbox_lost{{entry.reason, "why"}, entry.exit_code});
      CAF_MESSAGE("lost: " << std::string{to_string(entry.reason)});
      CAF_REQUIRE(world.over(entry.status));
      CAF_CHECK(world.failure() == entry.failure);
      CAF_CHECK_EQUAL(world.answers[0].failure.has_value(), entry.failure != errc::internal);
    }
  }
}

CAF_TEST(output_before_a_loss_is_in_the_answer) {
  start_code();
  tell(guest_output{stream_id::out, "last words"});
  tell(sandbox_lost{{errc::out_of_memory, "too much"}, 137});
  CAF_REQUIRE(over(run_status::out_of_memory));
  CAF_CHECK_EQUAL(answers[0].out.head, "last words");
  CAF_CHECK_EQUAL(answers[0].exit_code.value_or(-1), 137);
}

CAF_TEST(the_code_has_its_time_and_booting_does_not_count) {
  start();
  pass(60s);
  CAF_CHECK(answers.empty());
  tell(sandbox_up{"3.13.5"});
  pass(29s);
  CAF_CHECK(answers.empty());
  tell(guest_output{stream_id::out, "so far"});
  pass(2s);
  CAF_REQUIRE(over(run_status::timeout));
  CAF_CHECK(failure() == errc::timeout);
  CAF_CHECK(answers[0].failure->message.find("30 s") != std::string::npos);
  CAF_CHECK_EQUAL(answers[0].out.head, "so far");
  CAF_CHECK(!answers[0].exit_code);
}

CAF_TEST(what_comes_after_the_end_changes_nothing) {
  start_code();
  tell(done_with(0));
  CAF_REQUIRE(over(run_status::success));
  tell(done_with(1));
  tell(sandbox_lost{{errc::out_of_memory, "too much"}, 137});
  call(1, "files", "read-file");
  cancel();
  pass(60s);
  CAF_CHECK(over(run_status::success));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(a_run_can_be_cancelled_at_any_point) {
  for (int point = 0; point < 4; ++point) {
    invocation_fixture world;
    world.registry->catalogue.held = point == 0;
    world.files->documents.held = point == 1;
    world.files->call.held = true;
    world.start();
    if (point >= 2) {
      world.tell(sandbox_up{"3.13.5"});
    }
    if (point == 3) {
      world.call(1, "files", "read-file");
    }
    world.cancel();
    CAF_CHECK(world.over(run_status::cancelled));
    CAF_CHECK(world.failure() == errc::cancelled);
    CAF_CHECK_EQUAL(world.sandboxes, point == 0 ? 0 : 1);
    // Answers on their way find nobody.
    world.open(world.registry->catalogue);
    world.open(world.files->documents);
    world.open(world.files->call);
    CAF_CHECK(world.over(run_status::cancelled));
    CAF_CHECK_EQUAL(world.files->cancelled.size(), point == 3 ? 1u : 0u);
  }
}

CAF_TEST(a_cancel_before_the_run_began_answers_the_run_with_an_error) {
  auto make_sandbox = [this](bool) { return box; };
  run = sys.spawn(invocation,
                  invocation_context{env, registry_actor, library,
                                     [this] { return sessions_actor; }, make_sandbox},
                  request);
  cancel();
  asker = sys.spawn([this](caf::event_based_actor* asking) {
    asking->request(run, caf::infinite, run_atom::value)
        .then([this](const run_answer& value) { answers.push_back(value); },
              [this](const caf::error& reason) { failures.push_back(from_caf(reason, "run")); });
  });
  consume_messages();
  CAF_CHECK(answers.empty());
  CAF_CHECK_EQUAL(failures.size(), 1u);
  CAF_CHECK(sandbox->runs.empty());
}

CAF_TEST(a_sandbox_that_died_while_it_waited_is_replaced_once) {
  start();
  CAF_CHECK_EQUAL(sandboxes, 1);
  tell(sandbox_lost{{errc::closed, "it takes no run any more"}, 0});
  CAF_CHECK_EQUAL(sandboxes, 2);
  CAF_CHECK(booted_would_do == std::vector({true, false}));
  CAF_REQUIRE_EQUAL(sandbox->runs.size(), 2u);
  CAF_CHECK_EQUAL(sandbox->runs[1].id, "run-7");
  CAF_CHECK_EQUAL(sandbox->runs[1].code, "print(1)");
  tell(sandbox_lost{{errc::closed, "it takes no run any more"}, 0});
  CAF_CHECK_EQUAL(sandboxes, 2);
  CAF_CHECK(answered(run_status::error));
}

CAF_TEST(a_sandbox_actor_that_was_dead_before_the_run_came_is_replaced) {
  auto dead = sys.spawn(scripted_sandbox, sandbox);
  caf::anon_send_exit(dead, caf::exit_reason::kill);
  consume_messages();
  first_box = dead;
  start();
  CAF_CHECK_EQUAL(sandboxes, 2);
  CAF_CHECK_EQUAL(sandbox->runs.size(), 1u);
  tell(sandbox_up{"3.13.5"});
  tell(done_with(0));
  CAF_CHECK(answered(run_status::success));
}

CAF_TEST(code_that_began_is_never_run_again) {
  start_code();
  tell(sandbox_lost{{errc::closed, "gone"}, 0});
  CAF_CHECK_EQUAL(sandboxes, 1);
  CAF_CHECK(over(run_status::error));
}

CAF_TEST(a_run_is_started_once) {
  start_code();
  std::vector<error> second;
  auto again = sys.spawn([&](caf::event_based_actor* asking) {
    asking->request(run, caf::infinite, run_atom::value)
        .then([](const run_answer&) {},
              [&](const caf::error& reason) { second.push_back(from_caf(reason, "run")); });
  });
  consume_messages();
  CAF_CHECK_EQUAL(second.size(), 1u);
  CAF_CHECK_EQUAL(sandboxes, 1);
  tell(done_with(0));
  CAF_CHECK(over(run_status::success));
  caf::anon_send_exit(again, caf::exit_reason::kill);
}

CAF_TEST(a_sandbox_that_dies_without_a_word_is_answered) {
  for (bool booted : {false, true}) {
    invocation_fixture world;
    booted ? world.start_code() : world.start();
    caf::anon_send_exit(world.box, caf::exit_reason::kill);
    world.consume_messages();
    CAF_REQUIRE_EQUAL(world.answers.size(), 1u);
    CAF_CHECK(world.answers[0].status == run_status::error);
    CAF_CHECK(world.failure() == errc::runtime_lost);
    CAF_CHECK(*world.terminated);
  }
}

CAF_TEST(a_registry_that_fails_or_is_silent_is_answered) {
  for (bool silent : {false, true}) {
    invocation_fixture world;
    world.registry->catalogue.held = silent;
    world.registry->catalogue.refuse_with(errc::internal, "broken");
    world.start();
    world.pass(11s);
    CAF_CHECK(world.over(run_status::unavailable));
    CAF_CHECK_EQUAL(world.sandboxes, 0);
  }
}

CAF_TEST(output_is_cut_to_what_the_answer_shows_and_credited_event_by_event) {
  env->bounds.answer_stream = 100;
  start_code();
  for (int i = 0; i < 50; ++i) {
    tell(guest_output{stream_id::out, "0123456789"});
  }
  CAF_CHECK_EQUAL(sandbox->credit, 50u);
  tell(refused_call{3, {errc::invalid_argument, "bad"}});
  CAF_CHECK_EQUAL(sandbox->credit, 51u);
  tell(done_with(0));
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].out.total, 500u);
  CAF_CHECK_EQUAL(answers[0].out.omitted, 400u);
}

CAF_TEST(an_observer_that_does_not_answer_holds_the_credit_back) {
  auto observer = std::make_shared<observer_script>();
  observer->dealt_with.answer = caf::ok_atom::value;
  observer->dealt_with.held = true;
  request.output = sys.spawn(scripted_observer, observer);
  start_code();
  for (int i = 0; i < 3; ++i) {
    tell(guest_output{stream_id::out, "x"});
  }
  CAF_CHECK_EQUAL(observer->outputs.size(), 3u);
  CAF_CHECK_EQUAL(sandbox->credit, 0u);
  // Credit for a call that came later would be taken for that of the output before it.
  ask(1, guest_call_kind::list_servers);
  tell(refused_call{2, {errc::invalid_argument, "bad"}});
  CAF_CHECK(!unanswered(1));
  CAF_CHECK_EQUAL(sandbox->credit, 0u);
  open(observer->dealt_with);
  CAF_CHECK_EQUAL(sandbox->credit, 5u);
  ask(3, guest_call_kind::list_servers);
  CAF_CHECK_EQUAL(sandbox->credit, 6u);
  tell(guest_output{stream_id::out, "x"});
  CAF_CHECK_EQUAL(sandbox->credit, 7u);
  tell(done_with(0));
  CAF_CHECK(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].out.head, "xxxx");
}

CAF_TEST(an_observer_that_dies_or_fails_does_not_stop_the_run) {
  for (bool dies : {false, true}) {
    invocation_fixture world;
    auto observer = std::make_shared<observer_script>();
    observer->dealt_with.refuse_with(errc::closed, "gone");
    world.request.output = world.sys.spawn(scripted_observer, observer);
    if (dies) {
      caf::anon_send_exit(world.request.output, caf::exit_reason::kill);
    }
    world.start_code();
    world.tell(guest_output{stream_id::out, "x"});
    world.tell(guest_output{stream_id::out, "y"});
    CAF_CHECK_EQUAL(world.sandbox->credit, 2u);
    world.tell(done_with(0));
    CAF_CHECK(world.over(run_status::success));
    CAF_CHECK_EQUAL(world.answers[0].out.head, "xy");
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
