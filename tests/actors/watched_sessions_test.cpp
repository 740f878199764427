#define CAF_SUITE watched_sessions

#include <sstream>

#include <spdlog/sinks/ostream_sink.h>

#include "tests/support/activity_log.hpp"
#include "tests/support/http_fixture.hpp"

/// What operators see of clients' runs over HTTP, and the traces that these are a part of.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const std::string other = "00-11111111111111111111111111111111-2222222222222222-00";

struct watched_http : http_fixture {
  watched_http() {
    env->activity = watched.board->tenant("alpha");
    open();
  }

  std::vector<running_run> running() const { return watched.board->running({}, 100); }

  trace_context trace_of_run(std::size_t run) const { return runs->at(run)->request.trace; }

  answer_ptr traced(const json& id, json meta, std::vector<http_field> fields) {
    json params = {{"name", "run_python"}, {"arguments", {{"code", "1"}}}};
    if (!meta.is_null()) {
      params["_meta"] = std::move(meta);
    }
    return post(request(id, "tools/call", params), in_session(std::move(fields)));
  }

  watched_board watched;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(watched_sessions_tests, watched_http)

CAF_TEST(a_run_is_shown_while_it_waits_and_told_once_it_has_its_place) {
  admission->places = 0;
  call(1);
  CAF_REQUIRE(running().size() == 1u);
  CAF_CHECK(running()[0].stage == run_stage::queued);
  CAF_CHECK(running()[0].tenant == "alpha");
  CAF_CHECK(watched.log->lines().empty());
  legacy(2, "notifications/cancelled");
  admission->places = 100;
  call(3);
  CAF_REQUIRE_EQUAL(runs->size(), 1u);
  CAF_CHECK(watched.log->lines() == (lines{"alpha admitted 0"}));
  CAF_CHECK(running().back().stage == run_stage::booting);
}

CAF_TEST(a_run_that_does_not_get_its_place_is_told_as_refused) {
  admission->overloaded = true;
  call(1);
  CAF_CHECK(running().empty());
  CAF_CHECK(watched.log->lines() == (lines{"alpha refused unavailable"}));
}

CAF_TEST(a_call_that_makes_no_sense_is_told_as_refused) {
  legacy(1, "tools/call", {{"name", "run_python"}, {"arguments", {{"kode", "1"}}}});
  CAF_CHECK(running().empty());
  CAF_CHECK(watched.log->lines() == (lines{"alpha refused validation_error"}));
}

CAF_TEST(a_run_whose_actor_fails_has_ended) {
  call(1);
  CAF_REQUIRE_EQUAL(runs->size(), 1u);
  caf::anon_send_exit((*runs)[0]->actor, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(running().empty());
  CAF_CHECK(watched.log->lines() == (lines{"alpha admitted 0", "alpha ended error 0"}));
}

CAF_TEST(a_run_is_a_part_of_the_trace_that_the_header_names_in_either_era) {
  traced(1, nullptr, {{"traceparent", parent}, {"tracestate", "a=1"}});
  CAF_REQUIRE_EQUAL(runs->size(), 1u);
  CAF_CHECK(trace_of_run(0) == (trace_context{parent, "a=1"}));
  CAF_CHECK(running()[0].what.trace == "4bf92f3577b34da6a3ce929d0e0e4736");
  auto params = json{{"name", "run_python"},
                     {"arguments", {{"code", "1"}}},
                     {"_meta",
                      {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", json::object()}}}};
  post(request(2, "tools/call", params), {{"MCP-Protocol-Version", "2026-07-28"},
                                          {"Mcp-Method", "tools/call"},
                                          {"Mcp-Name", "run_python"},
                                          {"traceparent", parent}});
  CAF_REQUIRE_EQUAL(runs->size(), 2u);
  CAF_CHECK(trace_of_run(1) == (trace_context{parent, {}}));
}

CAF_TEST(what_the_message_says_of_its_trace_goes_before_the_header) {
  traced(1, {{"traceparent", other}}, {{"traceparent", parent}, {"tracestate", "a=1"}});
  traced(2, {{"traceparent", "nonsense"}}, {{"traceparent", parent}});
  // The header of one request is not that of the next.
  traced(3, nullptr, {});
  CAF_REQUIRE_EQUAL(runs->size(), 3u);
  CAF_CHECK(trace_of_run(0) == (trace_context{other, {}}));
  CAF_CHECK(trace_of_run(1) == (trace_context{parent, {}}));
  CAF_CHECK(trace_of_run(2) == trace_context{});
}

CAF_TEST(a_run_knows_the_id_that_its_client_gave_the_request) {
  call(7);
  call("seven \"7\"");
  CAF_REQUIRE_EQUAL(runs->size(), 2u);
  CAF_CHECK_EQUAL((*runs)[0]->request.asked_as, "7");
  CAF_CHECK_EQUAL((*runs)[1]->request.asked_as, "seven \"7\"");
}

CAF_TEST_FIXTURE_SCOPE_END()
