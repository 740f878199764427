#define CAF_SUITE rest_watch

#include "tests/support/rest_fixture.hpp"

/// podman's REST service is there and doesn't answer.

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(rest_watch_tests, rest_fixture)

CAF_TEST(a_service_that_hangs_while_code_runs_is_given_up) {
  make_driver();
  auto handle = create(watcher());
  CAF_CHECK(confine(handle).value);
  service.hangs = true;
  pass_until([&] { return !ends.empty(); });
  CAF_REQUIRE(ends.size() == 1);
  CAF_CHECK_EQUAL(service.process, 0u);
  service.hangs = false;
  auto verdict = get<exit_verdict>(classify_atom::value, handle, ends[0], std::string{});
  CAF_REQUIRE(verdict.value);
  CAF_CHECK(verdict.value->reason.code == errc::runtime_lost);
  CAF_CHECK(mentions(verdict.value->reason.message, "service was lost"));
  // Nobody needed the next service for that.
  CAF_CHECK_EQUAL(services(), 1u);
  CAF_CHECK(destroy(create()).value);
  CAF_CHECK_EQUAL(services(), 2u);
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(a_request_that_a_service_never_answers_costs_no_run) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto first = service.process;
  script->silent = true;
  auto started = script->started;
  script->started = [&](const scripted_child& child) {
    script->silent = false;
    started(child);
  };
  auto handle = create();
  CAF_CHECK(service.process != first);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(engine.containers.empty());
  // Its creation was given up with the service, before its own time was up.
  CAF_REQUIRE(script->unanswered[0].first.ends_with("/create"));
  CAF_CHECK(sched.clock().now() < script->unanswered[0].second.when());
}

CAF_TEST(one_look_that_a_service_misses_is_forgiven) {
  make_driver();
  auto handle = create(watcher());
  service.refusals["_ping"] = 1;
  pass_until([&] { return !ends.empty(); }, 20s);
  CAF_CHECK(ends.empty());
  CAF_CHECK_EQUAL(service.refusals["_ping"], 0);
  service.refusals["_ping"] = 2;
  pass_until([&] { return !ends.empty(); }, 20s);
  CAF_CHECK_EQUAL(ends.size(), 1u);
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(a_service_without_work_is_left_alone) {
  make_driver();
  CAF_CHECK(destroy(create()).value);
  script->requests.clear();
  pass_until([] { return false; }, 20s);
  CAF_CHECK(script->requests.empty());
}

CAF_TEST(at_the_end_nothing_waits_for_a_service_that_hangs_and_none_is_started) {
  make_driver();
  auto handle = create(watcher());
  service.hangs = true;
  anon_send(caf::actor_cast<container_runtime_impl_actor>(caf::actor_cast<caf::actor>(runtime)),
            end_atom::value);
  // No time needs to go by: the script's service answers at once that it didn't.
  consume();
  CAF_CHECK_EQUAL(ends.size(), 1u);
  CAF_CHECK_EQUAL(service.process, 0u);
  service.hangs = false;
  auto refused = get<container_handle>(
      create_atom::value, container_request{std::string(32, 'c'), env.runtime_dir}, owner());
  CAF_CHECK(mentions(refused.failure.message, "ending"));
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(services(), 1u);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(requests_to_a_service_that_hangs_end_and_the_command_line_cleans_up) {
  make_driver();
  auto handle = create();
  service.hangs = true;
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(script->count("rm -f -v -t 0 --ignore " + handle.name) > 0);
}

CAF_TEST_FIXTURE_SCOPE_END()

CAF_TEST_FIXTURE_SCOPE(users_rest_watch_tests, users_socket_fixture)

CAF_TEST(the_streams_of_the_accounts_own_service_end_when_it_hangs) {
  make_driver();
  auto handle = create(watcher());
  service.hangs = true;
  pass_until([&] { return !ends.empty(); });
  CAF_REQUIRE(ends.size() == 1);
  auto verdict = get<exit_verdict>(classify_atom::value, handle, ends[0], std::string{});
  CAF_REQUIRE(verdict.value);
  CAF_CHECK(mentions(verdict.value->reason.message, "service or the sandbox was killed"));
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST_FIXTURE_SCOPE_END()
