#define CAF_SUITE metrics

#include <sstream>

#include <fmt/format.h>

#include "actors/metrics.hpp"
#include "actors/process_usage.hpp"

#include "caf/test/unit_test.hpp"

/// What /metrics says.

using namespace bulkhead;
using namespace std::chrono_literals;

namespace {

struct metrics_fixture {
  std::string render() const { return all->render(*board, budget.get()); }

  /// The value of the series with exactly that name and those labels, or nothing.
  std::string value(const std::string& series) const {
    std::istringstream text{render()};
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(series + " ")) {
        return line.substr(series.size() + 1);
      }
    }
    return "none";
  }

  std::shared_ptr<metrics> all = std::make_shared<metrics>();
  std::shared_ptr<activity_board> board =
      std::make_shared<activity_board>([] { return std::chrono::system_clock::time_point{}; }, all);
  std::shared_ptr<memory_budget> budget = std::make_shared<memory_budget>(1000);
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(metrics_tests, metrics_fixture)

CAF_TEST(runs_are_counted_by_tenant_and_status_and_timed) {
  auto alpha = board->tenant("alpha");
  auto beta = board->tenant("beta");
  for (auto status : {run_status::success, run_status::success, run_status::timeout}) {
    auto run = alpha->run_asked({"run", {}, {}, {}, false});
    run->admitted(30ms, {});
    run->ended(status, 2s);
  }
  beta->run_refused(run_status::unavailable);
  CAF_CHECK(value("bulkhead_runs_total{status=\"success\",tenant=\"alpha\"}") == "2");
  CAF_CHECK(value("bulkhead_runs_total{status=\"timeout\",tenant=\"alpha\"}") == "1");
  CAF_CHECK(value("bulkhead_runs_total{status=\"unavailable\",tenant=\"beta\"}") == "1");
  CAF_CHECK(value("bulkhead_queue_seconds_count") == "3");
  CAF_CHECK(value("bulkhead_queue_seconds_bucket{le=\"0.025\"}") == "0");
  CAF_CHECK(value("bulkhead_queue_seconds_bucket{le=\"0.05\"}") == "3");
  CAF_CHECK(value("bulkhead_run_seconds_sum") == "6");
  CAF_CHECK(value("bulkhead_run_seconds_bucket{le=\"+Inf\"}") == "3");
}

CAF_TEST(a_tenant_that_is_gone_loses_its_series_and_others_keep_theirs) {
  auto alpha = board->tenant("alpha");
  auto beta = board->tenant("beta");
  alpha->run_refused(run_status::error);
  beta->run_refused(run_status::error);
  alpha->sessions_are(4);
  CAF_CHECK(value("bulkhead_sessions{tenant=\"alpha\"}") == "4");
  alpha.reset();
  CAF_CHECK(render().find("alpha") == std::string::npos);
  CAF_CHECK(value("bulkhead_runs_total{status=\"error\",tenant=\"beta\"}") == "1");
  board->tenant("alpha")->run_refused(run_status::timeout);
  CAF_CHECK(value("bulkhead_runs_total{status=\"error\",tenant=\"alpha\"}") == "none");
}

CAF_TEST(what_tenants_have_now_is_read_when_it_is_asked_for) {
  auto alpha = board->tenant("alpha");
  std::size_t depth = 2;
  alpha->pool_is([&depth] { return depth; });
  auto run = alpha->run_asked({"run", {}, {}, {}, false});
  CAF_CHECK(value("bulkhead_pool_depth{tenant=\"alpha\"}") == "2");
  CAF_CHECK(value("bulkhead_runs{tenant=\"alpha\"}") == "1");
  depth = 0;
  run->ended(run_status::success, {});
  CAF_CHECK(value("bulkhead_pool_depth{tenant=\"alpha\"}") == "0");
  CAF_CHECK(value("bulkhead_runs{tenant=\"alpha\"}") == "0");
}

CAF_TEST(calls_are_timed_by_server_and_counted_by_outcome) {
  auto alpha = board->tenant("alpha");
  alpha->tool_call_ended("files", "success", 3ms);
  alpha->tool_call_ended("files", "success", 3ms);
  alpha->tool_call_ended("files", "timeout", 70s);
  CAF_CHECK(value("bulkhead_tool_call_seconds_count{server=\"files\"}") == "3");
  CAF_CHECK(value("bulkhead_tool_call_seconds_bucket{server=\"files\",le=\"0.005\"}") == "2");
  CAF_CHECK(value("bulkhead_tool_call_seconds_bucket{server=\"files\",le=\"60\"}") == "2");
  CAF_CHECK(value("bulkhead_tool_calls_total{outcome=\"success\",server=\"files\"}") == "2");
  CAF_CHECK(value("bulkhead_tool_calls_total{outcome=\"timeout\",server=\"files\"}") == "1");
}

CAF_TEST(the_names_of_servers_are_bounded) {
  auto alpha = board->tenant("alpha");
  for (int i = 0; i < 1'000; ++i) {
    alpha->tool_call_ended(fmt::format("server-{}", i), "success", 1ms);
    alpha->upstream_restarted(fmt::format("server-{}", i));
  }
  std::istringstream text{render()};
  std::size_t series = 0;
  for (std::string line; std::getline(text, line);) {
    series += line.starts_with("bulkhead_tool_call_seconds_count{") ? 1 : 0;
  }
  CAF_CHECK_EQUAL(series, 201u);
  CAF_CHECK(value("bulkhead_tool_call_seconds_count{server=\"other\"}") == "800");
  CAF_CHECK(value("bulkhead_upstream_restarts_total{server=\"other\"}") == "800");
  CAF_CHECK(value("bulkhead_upstream_restarts_total{server=\"server-0\"}") == "1");
}

CAF_TEST(names_of_any_kind_do_not_break_the_format) {
  auto odd = board->tenant("a\"b\\c\nd");
  odd->run_refused(run_status::error);
  CAF_CHECK(value("bulkhead_runs_total{status=\"error\",tenant=\"a\\\"b\\\\c\\nd\"}") == "1");
}

CAF_TEST(boots_leaks_requests_and_restarts_are_counted) {
  auto alpha = board->tenant("alpha");
  // Before anything has happened the kinds are there.
  CAF_CHECK(value("bulkhead_leaks_swept_total{kind=\"container\"}") == "0");
  CAF_CHECK(value("bulkhead_sandboxes_taken_total{from=\"shelf\"}") == "0");
  alpha->sandbox_taken(sandbox_source::shelf);
  alpha->sandbox_booted(400ms);
  alpha->leaks_swept({1, 2, 3, 4});
  alpha->upstream_restarted("files");
  board->http_answered(200);
  board->http_answered(200);
  board->http_answered(401);
  CAF_CHECK(value("bulkhead_sandboxes_taken_total{from=\"shelf\"}") == "1");
  CAF_CHECK(value("bulkhead_boot_seconds_bucket{le=\"0.5\"}") == "1");
  CAF_CHECK(value("bulkhead_leaks_swept_total{kind=\"process\"}") == "2");
  CAF_CHECK(value("bulkhead_leaks_swept_total{kind=\"folder\"}") == "4");
  CAF_CHECK(value("bulkhead_upstream_restarts_total{server=\"files\"}") == "1");
  CAF_CHECK(value("bulkhead_http_requests_total{status=\"200\"}") == "2");
  CAF_CHECK(value("bulkhead_http_requests_total{status=\"401\"}") == "1");
}

CAF_TEST(the_process_and_its_budget_are_told) {
  memory_budget::share held;
  CAF_REQUIRE(budget->take(640, held));
  CAF_CHECK(value("bulkhead_memory_budget_used_bytes") == "640");
  CAF_CHECK(value("bulkhead_build_info{version=\"" BULKHEAD_VERSION "\"}") == "1");
  auto resident = value("process_resident_memory_bytes");
  CAF_REQUIRE(resident != "none");
  CAF_CHECK_GREATER(std::stod(resident), 100'000.0);
  CAF_CHECK(value("process_open_fds") != "0");
}

CAF_TEST(a_process_is_read_whatever_its_name) {
  auto text = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 99 8192 4 "
              "18446744073709551615 1 1 0 0 0 0 0 0 0";
  auto usage = parse_process_stat(text, 4096, 100);
  CAF_REQUIRE(usage);
  CAF_CHECK(usage->cpu_seconds == 2.0);
  CAF_CHECK_EQUAL(usage->threads, 3u);
  CAF_CHECK_EQUAL(usage->virtual_bytes, 8192u);
  CAF_CHECK_EQUAL(usage->resident_bytes, 16384u);
  for (const auto* bad : {"", "7 (a", "7 (a) S 1",
                          "7 (a) S 1 7 7 0 -1 4 1 0 0 0 x 5 0 0 2 0 3 0 "
                          "99 8192 4"}) {
    CAF_CHECK(!parse_process_stat(bad, 4096, 100));
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
