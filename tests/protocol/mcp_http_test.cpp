#include "protocol/mcp_http.hpp"

#include <gtest/gtest.h>

#include "protocol/mcp_client_protocol.hpp"

namespace bulkhead::upstream {
namespace {

constexpr scan_limits bounds{100'000};

outgoing_message read(const std::string& line) {
  auto result = read_outgoing(line, bounds);
  EXPECT_TRUE(result) << line;
  return result.value_or(outgoing_message{});
}

TEST(mcp_http, messages_of_ours_are_looked_at) {
  auto call = encode_call(7, era::modern, "naïve", R"({"a":1})");
  auto message = read(call);
  EXPECT_EQ(message.id, 7U);
  EXPECT_EQ(message.method, "tools/call");
  EXPECT_EQ(message.tool, "naïve");
  EXPECT_EQ(message.arguments, R"({"a":1})");
  EXPECT_TRUE(message.modern);
  auto legacy_line = encode_call(8, era::legacy, "t", "{}");
  EXPECT_FALSE(read(legacy_line).modern);
  auto discover_line = encode_discover(9);
  auto discover = read(discover_line);
  EXPECT_TRUE(discover.modern);
  EXPECT_NE(discover.meta.find("clientCapabilities"), std::string_view::npos);
  auto cancelled_line = encode_cancelled(7, "enough");
  auto cancelled = read(cancelled_line);
  EXPECT_EQ(cancelled.kind, rpc_kind::notification);
  EXPECT_EQ(cancelled.cancels, 7U);
  auto answer_line = encode_result("\"x\"", "{}");
  auto answer = read(answer_line);
  EXPECT_EQ(answer.kind, rpc_kind::response);
  EXPECT_EQ(answer.id, 0U);
}

TEST(mcp_http, bodies_are_told_by_their_type) {
  EXPECT_EQ(kind_of_body(""), body_kind::none);
  EXPECT_EQ(kind_of_body("application/json; charset=utf-8"), body_kind::json);
  EXPECT_EQ(kind_of_body("Application/Problem+JSON"), body_kind::json);
  EXPECT_EQ(kind_of_body("text/event-stream;charset=utf-8"), body_kind::events);
  EXPECT_EQ(kind_of_body("text/html"), body_kind::other);
}

TEST(mcp_http, errors_for_a_request_are_found_in_refusals) {
  EXPECT_EQ(error_line(R"({"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"m"}})", 5, bounds),
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-1,\"message\":\"m\"}}\n");
  EXPECT_EQ(
      error_line("{\"jsonrpc\":\"2.0\",\n\"id\":null,\n\"error\":{\n\"code\":-1}}", 5, bounds),
      "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{ \"code\":-1}}\n");
  EXPECT_FALSE(error_line(R"({"jsonrpc":"2.0","error":{"code":-1}})", 5, bounds).empty());
  EXPECT_EQ(error_line(R"({"jsonrpc":"2.0","id":6,"error":{"code":-1}})", 5, bounds), "");
  EXPECT_EQ(error_line(R"({"jsonrpc":"2.0","id":5,"result":{}})", 5, bounds), "");
  EXPECT_EQ(error_line("<html>", 5, bounds), "");
  EXPECT_EQ(error_line("", 5, bounds), "");
}

TEST(mcp_http, ended_sessions_are_told) {
  EXPECT_TRUE(ends_session(404, ""));
  EXPECT_TRUE(ends_session(400, "Bad Request: No valid session ID provided"));
  EXPECT_FALSE(ends_session(400, "Bad Request"));
  EXPECT_FALSE(ends_session(500, "no session"));
}

TEST(mcp_http, refusals_are_described_without_their_pages) {
  EXPECT_EQ(describe_status(503, body_kind::other, "\n starting\x1b[31m "),
            "HTTP 503 Service Unavailable: starting [31m ");
  EXPECT_EQ(describe_status(404, body_kind::other, " <html><body>…"), "HTTP 404 Not Found");
  EXPECT_EQ(describe_status(418, body_kind::none, ""), "HTTP 418");
}

TEST(mcp_http, what_a_server_says_of_itself_is_read) {
  EXPECT_TRUE(announces_tool_changes(R"({"capabilities":{"tools":{"listChanged":true}}})"));
  EXPECT_FALSE(announces_tool_changes(R"({"capabilities":{"tools":{"listChanged":false}}})"));
  EXPECT_FALSE(announces_tool_changes(R"({"capabilities":{}})"));
  EXPECT_FALSE(announces_tool_changes("7"));
  EXPECT_EQ(agreed_revision(R"({"protocolVersion":"2025-06-18"})"), "2025-06-18");
  EXPECT_EQ(agreed_revision("{}"), "");
  auto line = encode_listen(R"({"a":1})");
  auto listen = parse_rpc(line, bounds);
  ASSERT_TRUE(listen);
  EXPECT_EQ(listen->id, "\"listen\"");
  EXPECT_EQ(listen->params, R"({"notifications":{"toolsListChanged":true},"_meta":{"a":1}})");
}

} // namespace
} // namespace bulkhead::upstream
