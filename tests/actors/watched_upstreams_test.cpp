#define CAF_SUITE watched_upstreams

#include "tests/support/activity_log.hpp"
#include "tests/support/mcp_client_fixture.hpp"

/// What operators see of upstream servers, and what these are told of traces.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const trace_context trace{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1"};

struct watched_client : client_fixture {
  watched_client() { env->activity = watched.board->tenant("alpha"); }

  outcome_ptr<std::string> traced_call(const std::string& tool) {
    tool_call what{++last_call, tool, "{}", in(60s), {}};
    what.trace = trace;
    return ask<std::string>(call_atom::value, what);
  }

  watched_board watched;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(watched_upstreams_tests, watched_client)

CAF_TEST(a_modern_server_is_told_the_trace_of_a_call_and_of_no_other) {
  server = modern_methods();
  make_client();
  CAF_REQUIRE(traced_call("echo")->value);
  auto meta = last_line(1)["params"]["_meta"];
  CAF_CHECK(meta["traceparent"] == trace.parent);
  CAF_CHECK(meta["tracestate"] == trace.state);
  CAF_REQUIRE(call("echo")->value);
  meta = last_line(1)["params"]["_meta"];
  CAF_CHECK(!meta.contains("traceparent"));
  CAF_CHECK(!meta.contains("tracestate"));
}

CAF_TEST(a_legacy_server_is_told_no_trace) {
  server = legacy_methods();
  make_client();
  CAF_REQUIRE(traced_call("echo")->value);
  CAF_CHECK(last_line(1).dump().find("trace") == std::string::npos);
}

CAF_TEST(a_restart_is_told_and_a_first_start_or_a_second_try_of_it_is_not) {
  server = legacy_methods();
  // It ends at the first question, as some do, and is asked another way.
  server["server/discover"] = [](const auto& child, const auto&) { child.exit(1); };
  make_client();
  CAF_REQUIRE(call("echo")->value);
  CAF_CHECK_EQUAL(script->children.size(), 2u);
  CAF_CHECK(watched.log->lines().empty());
  script->children[1].exit(0, 11);
  consume_messages();
  auto again = call("echo");
  pass(1s);
  CAF_REQUIRE(again->value);
  CAF_CHECK(watched.log->lines() == lines{"restarted srv"});
}

CAF_TEST_FIXTURE_SCOPE_END()
