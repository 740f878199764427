#define CAF_SUITE activity

#include "tests/support/activity_log.hpp"
#include "tests/support/invocation_fixture.hpp"

/// What operators see of runs: the board itself, and what a run tells it.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct board_fixture : watched_board {
  std::shared_ptr<run_watch> ask(const std::shared_ptr<activity>& of, const std::string& id) {
    return of->run_asked({id, "client", {"files"}, {}, false});
  }

  std::vector<std::string> running(std::string_view tenant = {}, std::size_t most = 100) const {
    std::vector<std::string> ids;
    for (const auto& run : board->running(tenant, most)) {
      ids.push_back(run.what.id);
    }
    return ids;
  }
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(board_tests, board_fixture)

CAF_TEST(a_run_is_shown_with_its_stage_from_when_it_is_asked_for_until_it_ends) {
  auto alpha = board->tenant("alpha");
  auto run = alpha->run_asked({"run-1", "editor", {"files"}, "abc", true});
  CAF_REQUIRE(board->running({}, 9).size() == 1u);
  auto shown = board->running({}, 9)[0];
  CAF_CHECK(shown.stage == run_stage::queued);
  CAF_CHECK_EQUAL(shown.tenant, "alpha");
  CAF_CHECK_EQUAL(shown.what.client, "editor");
  CAF_CHECK_EQUAL(shown.what.trace, "abc");
  CAF_CHECK(shown.what.in_session);
  CAF_CHECK(shown.since == time);
  run->admitted(std::chrono::milliseconds{20}, {"files", "web"});
  shown = board->running({}, 9)[0];
  CAF_CHECK(shown.stage == run_stage::booting);
  CAF_CHECK_EQUAL(shown.what.servers.size(), 2u);
  run->code_runs();
  run->called_tool();
  run->called_tool();
  shown = board->running({}, 9)[0];
  CAF_CHECK(shown.stage == run_stage::running);
  CAF_CHECK_EQUAL(shown.calls, 2u);
  run->ended(run_status::timeout, std::chrono::milliseconds{300});
  CAF_CHECK(board->running({}, 9).empty());
  CAF_CHECK(log->lines() == (lines{"alpha admitted 20", "alpha ended timeout 300"}));
}

CAF_TEST(only_the_first_end_of_a_run_counts) {
  auto alpha = board->tenant("alpha");
  auto run = ask(alpha, "run-1");
  run->admitted({}, {});
  run->ended(run_status::success, std::chrono::milliseconds{5});
  run->ended(run_status::error, std::chrono::milliseconds{9});
  run.reset();
  CAF_CHECK(log->lines() == (lines{"alpha admitted 0", "alpha ended success 5"}));
}

CAF_TEST(a_run_that_never_had_its_place_is_told_as_refused) {
  auto alpha = board->tenant("alpha");
  ask(alpha, "run-1")->ended(run_status::cancelled, std::chrono::milliseconds{5});
  CAF_CHECK(log->lines() == (lines{"alpha refused cancelled"}));
}

CAF_TEST(a_run_that_nobody_holds_any_more_has_ended) {
  auto alpha = board->tenant("alpha");
  auto run = ask(alpha, "run-1");
  run->admitted({}, {});
  time += std::chrono::milliseconds{250};
  run.reset();
  CAF_CHECK(running().empty());
  CAF_CHECK(log->lines() == (lines{"alpha admitted 0", "alpha ended error 250"}));
}

CAF_TEST(runs_are_shown_oldest_first_by_tenant_and_no_more_than_asked_for) {
  auto alpha = board->tenant("alpha");
  auto beta = board->tenant("beta");
  std::vector<std::shared_ptr<run_watch>> runs;
  for (const auto* id : {"run-1", "run-2", "run-3"}) {
    runs.push_back(ask(alpha, id));
    runs.push_back(ask(beta, std::string{id} + "b"));
  }
  CAF_CHECK(running("alpha") == (lines{"run-1", "run-2", "run-3"}));
  CAF_CHECK(running("beta", 2) == (lines{"run-1b", "run-2b"}));
  CAF_CHECK(running({}, 3) == (lines{"run-1", "run-1b", "run-2"}));
  CAF_CHECK(running("alph").empty());
}

CAF_TEST(tenants_are_told_with_their_runs_sessions_and_waiting_sandboxes) {
  auto alpha = board->tenant("alpha");
  auto beta = board->tenant("beta");
  alpha->sessions_are(3);
  alpha->pool_is([] { return std::size_t{2}; });
  auto run = ask(beta, "run-1");
  auto all = board->tenants();
  CAF_REQUIRE_EQUAL(all.size(), 2u);
  CAF_CHECK_EQUAL(all[0].name, "alpha");
  CAF_CHECK_EQUAL(all[0].sessions, 3u);
  CAF_CHECK_EQUAL(all[0].waiting, 2u);
  CAF_CHECK_EQUAL(all[0].runs, 0u);
  CAF_CHECK_EQUAL(all[1].name, "beta");
  CAF_CHECK_EQUAL(all[1].runs, 1u);
  CAF_CHECK_EQUAL(all[1].waiting, 0u);
}

CAF_TEST(a_tenant_is_gone_with_the_last_of_its_runs_unless_it_is_back) {
  auto first = board->tenant("alpha");
  auto run = ask(first, "run-1");
  first.reset();
  CAF_CHECK(log->lines().empty());
  CAF_CHECK(board->tenants().size() == 1u);
  auto second = board->tenant("alpha");
  run.reset();
  CAF_CHECK(log->lines() == (lines{"alpha refused error"}));
  second.reset();
  CAF_CHECK(log->lines() == (lines{"alpha refused error", "alpha gone"}));
  CAF_CHECK(board->tenants().empty());
}

CAF_TEST(where_nobody_watches_nothing_comes_of_it) {
  auto nobody = std::make_shared<activity>();
  auto run = nobody->run_asked({"run-1", {}, {}, {}, false});
  CAF_REQUIRE(run);
  run->admitted({}, {});
  run->code_runs();
  run->ended(run_status::success, {});
  nobody->run_refused(run_status::error);
  nobody->tool_call_ended("files", "success", {});
  nobody->pool_is([] { return std::size_t{1}; });
  CAF_CHECK(board->tenants().empty());
  CAF_CHECK(board->running({}, 9).empty());
}

CAF_TEST_FIXTURE_SCOPE_END()

namespace {

struct watched_run : invocation_fixture {
  watched_run() {
    env->activity = watched.board->tenant("alpha");
    request.timeout = 10s;
  }

  watched_board watched;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(watched_run_tests, watched_run)

CAF_TEST(a_run_tells_how_it_goes_on_and_how_its_calls_end) {
  files->call.held = true;
  start();
  CAF_REQUIRE(watched.board->running({}, 9).size() == 1u);
  CAF_CHECK(watched.board->running({}, 9)[0].stage == run_stage::booting);
  pass(1s);
  tell(sandbox_up{"3.13.5"});
  CAF_CHECK(watched.board->running({}, 9)[0].stage == run_stage::running);
  call(1, "files", "read-file");
  pass(2s);
  CAF_CHECK(watched.board->running({}, 9)[0].calls == 1u);
  open(files->call);
  // What never goes to a server isn't timed.
  call(2, "files", "delete-all");
  call(3, "vault", "read");
  files->call.answer = R"({"content":[],"isError":true})";
  call(4, "files", "write-file");
  guest_done done;
  done.exit_code = 0;
  tell(done);
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(watched.log->lines() == (lines{"alpha admitted 0", "call files success 2000",
                                           "call files tool_error 0", "alpha ended success 3000"}));
  CAF_CHECK(watched.board->running({}, 9).empty());
}

CAF_TEST(a_call_that_the_end_of_the_time_cuts_short_is_told) {
  files->call.held = true;
  start_code();
  call(1, "files", "read-file");
  pass(10s);
  CAF_REQUIRE(over(run_status::timeout));
  CAF_CHECK(watched.log->lines() ==
            (lines{"alpha admitted 0", "call files timeout 10000", "alpha ended timeout 10000"}));
}

CAF_TEST(a_failed_call_is_told_with_its_reason) {
  files->call.answer = fail(errc::server_failed, "it died");
  start_code();
  call(1, "files", "read-file");
  cancel();
  CAF_CHECK(watched.log->lines() ==
            (lines{"alpha admitted 0", "call files server_failed 0", "alpha ended cancelled 0"}));
}

CAF_TEST(a_run_that_is_killed_has_ended) {
  start_code();
  caf::anon_send_exit(run, caf::exit_reason::kill);
  run = nullptr;
  consume_messages();
  CAF_CHECK(watched.board->running({}, 9).empty());
  CAF_CHECK(watched.log->lines() == (lines{"alpha admitted 0", "alpha ended error 0"}));
}

CAF_TEST_FIXTURE_SCOPE_END()
