#include "protocol/http_mcp.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "protocol/mcp_request.hpp"

namespace bulkhead {
namespace {

constexpr scan_limits bounds{100'000, 64, 10'000};

constexpr std::string_view sound_meta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

incoming_request post(std::string body, std::vector<http_field> fields = {}) {
  return {"POST", "/mcp", std::move(fields), std::move(body), "local"};
}

incoming_request modern(std::string_view method, std::string_view params = {},
                        std::vector<http_field> more = {}) {
  std::vector<http_field> fields = {{"MCP-Protocol-Version", "2026-07-28"},
                                    {"Mcp-Method", std::string{method}}};
  fields.insert(fields.end(), more.begin(), more.end());
  return post(fmt::format(R"({{"jsonrpc":"2.0","id":7,"method":"{}","params":{{{}{}{}}}}})", method,
                          sound_meta, params.empty() ? "" : ",", params),
              std::move(fields));
}

/// "modern", "legacy", or the status and the code of the refusal.
std::string verdict(const incoming_request& request, const mirrored_parameters& mirrored = {}) {
  auto read = read_post(request, bounds, mirrored);
  if (read) {
    return read->of == posted_message::era::modern ? "modern" : "legacy";
  }
  auto body = read.error().body;
  auto code = body.substr(body.find("\"code\":") + 7);
  return fmt::format("{} {}", read.error().status, code.substr(0, code.find(',')));
}

TEST(http_mcp, who_says_nothing_of_the_modern_era_is_of_the_legacy_one) {
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")), "legacy");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})",
                         {{"mcp-protocol-version", "2025-06-18"}})),
            "legacy");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})")), "legacy");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"result":{}})")), "legacy");
}

TEST(http_mcp, initialize_opens_a_session_whatever_the_header_says) {
  auto read = read_post(post(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{}})",
                             {{"MCP-Protocol-Version", "2026-07-28"}}),
                        bounds);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->initializes);
  EXPECT_EQ(read->id, "0");
  EXPECT_EQ(read->of, posted_message::era::legacy);
  EXPECT_EQ(verdict(modern("initialize")), "modern");
}

TEST(http_mcp, an_unknown_revision_is_a_bad_request) {
  for (const auto* body : {R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})",
                           R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
                           R"({"jsonrpc":"2.0","id":1,"result":{}})"}) {
    EXPECT_EQ(verdict(post(body, {{"MCP-Protocol-Version", "1900-01-01"}})).substr(0, 3), "400")
        << body;
  }
}

TEST(http_mcp, a_body_that_is_no_message_is_a_bad_request) {
  EXPECT_EQ(verdict(post("")), "400 -32700");
  EXPECT_EQ(verdict(post("{")), "400 -32700");
  EXPECT_EQ(verdict(post("[]")), "400 -32600");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"1.0","id":4,"method":"ping"})")), "400 -32600");
}

TEST(http_mcp, a_modern_request_passes_with_its_headers) {
  EXPECT_EQ(verdict(modern("tools/list")), "modern");
  EXPECT_EQ(verdict(modern("tools/call", R"("name":"a")", {{"Mcp-Name", "a"}})), "modern");
  EXPECT_EQ(
      verdict(modern("resources/read", R"("uri":"x://é")", {{"Mcp-Name", "=?base64?eDovL8Op?="}})),
      "modern");
}

TEST(http_mcp, headers_that_are_missing_or_say_something_else_are_a_mismatch) {
  auto without_version = modern("tools/list");
  without_version.fields.erase(without_version.fields.begin());
  EXPECT_EQ(verdict(without_version), "400 -32020");
  auto without_method = modern("tools/list");
  without_method.fields.pop_back();
  EXPECT_EQ(verdict(without_method), "400 -32020");
  auto other_case = modern("tools/list");
  other_case.fields.back().value = "TOOLS/LIST";
  EXPECT_EQ(verdict(other_case), "400 -32020");
  auto other_version = modern("tools/list");
  other_version.fields.front().value = "2025-11-25";
  EXPECT_EQ(verdict(other_version), "400 -32020");
  EXPECT_EQ(verdict(modern("tools/call", R"("name":"a")")), "400 -32020");
  EXPECT_EQ(verdict(modern("prompts/get", R"("name":"a")", {{"Mcp-Name", "b"}})), "400 -32020");
  EXPECT_EQ(verdict(modern("tools/call", R"("name":"a")", {{"Mcp-Name", "a"}, {"mcp-name", "a"}})),
            "400 -32020");
  EXPECT_EQ(verdict(modern("tools/call", R"("name":"a")", {{"Mcp-Name", "=?base64?YQ?="}})),
            "400 -32020");
}

TEST(http_mcp, a_modern_request_without_its_meta_is_refused) {
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})",
                         {{"MCP-Protocol-Version", "2026-07-28"}})),
            "400 -32602");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":)"
                         R"({"io.modelcontextprotocol/clientCapabilities":{}}}})",
                         {{"MCP-Protocol-Version", "2026-07-28"}})),
            "400 -32602");
  EXPECT_EQ(verdict(post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":)"
                         R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})",
                         {{"MCP-Protocol-Version", "2026-07-28"}})),
            "400 -32602");
}

TEST(http_mcp, a_revision_to_come_is_told_which_ones_there_are) {
  auto read =
      read_post(post(R"({"jsonrpc":"2.0","id":"x","method":"server/discover","params":{"_meta":)"
                     R"({"io.modelcontextprotocol/protocolVersion":"v999",)"
                     R"("io.modelcontextprotocol/clientCapabilities":{}}}})",
                     {{"MCP-Protocol-Version", "v999"}}),
                bounds);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().status, 400);
  EXPECT_NE(read.error().body.find(R"("id":"x")"), std::string::npos);
  EXPECT_NE(read.error().body.find(R"({"supported":["2026-07-28"],"requested":"v999"})"),
            std::string::npos);
}

TEST(http_mcp, mirrored_parameters_say_what_the_arguments_say) {
  auto mirrored = [](std::string_view tool) {
    return tool == "a" ? std::vector<mirrored_parameter>{{"region", "Region"}, {"n", "N"}}
                       : std::vector<mirrored_parameter>{};
  };
  auto call = [&](std::string_view arguments, std::vector<http_field> more) {
    more.push_back({"Mcp-Name", "a"});
    return verdict(
        modern("tools/call", fmt::format(R"("name":"a","arguments":{})", arguments), more),
        mirrored);
  };
  EXPECT_EQ(call(R"({"region":"Hello"})", {{"mcp-param-region", "Hello"}}), "modern");
  EXPECT_EQ(call(R"({"region":"Hello"})", {{"Mcp-Param-Region", "=?base64?SGVsbG8=?="}}), "modern");
  EXPECT_EQ(call(R"({"region":"=?base64?SGVsbG8="})", {{"Mcp-Param-Region", "=?base64?SGVsbG8="}}),
            "modern");
  EXPECT_EQ(call(R"({"n":42})", {{"Mcp-Param-N", "42"}}), "modern");
  EXPECT_EQ(call(R"({"region":null})", {}), "modern");
  EXPECT_EQ(call("{}", {}), "modern");
  EXPECT_EQ(call(R"({"region":"Hello"})", {}), "400 -32020");
  EXPECT_EQ(call("{}", {{"Mcp-Param-Region", "Hello"}}), "400 -32020");
  EXPECT_EQ(call(R"({"region":"Hello"})", {{"Mcp-Param-Region", "=?base64?SGVsbG8?="}}),
            "400 -32020");
  EXPECT_EQ(call(R"({"region":"Hello"})", {{"Mcp-Param-Region", "=?base64?SGVs!!!bG8=?="}}),
            "400 -32020");
}

TEST(http_mcp, sessions_are_for_the_legacy_era) {
  incoming_request get{"GET", "/mcp", {}, {}, {}};
  EXPECT_TRUE(check_session_era(get));
  get.fields = {{"MCP-Protocol-Version", "2025-03-26"}};
  EXPECT_TRUE(check_session_era(get));
  get.fields = {{"MCP-Protocol-Version", "2026-07-28"}};
  ASSERT_FALSE(check_session_era(get));
  EXPECT_EQ(check_session_era(get).error().status, 405);
  get.fields = {{"MCP-Protocol-Version", "1900-01-01"}};
  EXPECT_EQ(check_session_era(get).error().status, 400);
}

TEST(http_mcp, a_request_gets_another_id_and_its_answer_the_first_one) {
  EXPECT_EQ(with_request_id(R"({"a":{"id":1}, "id" : "x" ,"method":"m"})", "42"),
            R"({"a":{"id":1}, "id" : 42 ,"method":"m"})");
  EXPECT_EQ(readdressed(R"({"jsonrpc":"2.0","id":42,"result":{"id":42}})", "42", "\"x\""),
            R"({"jsonrpc":"2.0","id":"x","result":{"id":42}})");
  EXPECT_EQ(
      readdressed(R"({"method":"m","params":{"_meta":)"
                  R"({"io.modelcontextprotocol/subscriptionId":42},"n":42}})",
                  "42", "7"),
      R"({"method":"m","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"n":42}})");
  EXPECT_EQ(readdressed(R"({"id":42,"result":{"_meta":)"
                        R"({"io.modelcontextprotocol/subscriptionId":42}}})",
                        "42", "\"longer than before\""),
            R"({"id":"longer than before","result":{"_meta":)"
            R"({"io.modelcontextprotocol/subscriptionId":"longer than before"}}})");
}

TEST(http_mcp, the_status_of_an_answer_follows_its_error) {
  auto status = [](int code) { return status_of_response(encode_error("1", code, "m")); };
  EXPECT_EQ(status_of_response(encode_result("1", R"({"error":{"code":-32601}})")), 200);
  EXPECT_EQ(status(-32601), 404);
  EXPECT_EQ(status(-32020), 400);
  EXPECT_EQ(status(-32021), 400);
  EXPECT_EQ(status(-32022), 400);
  EXPECT_EQ(status(-32600), 400);
  EXPECT_EQ(status(-32602), 200);
  EXPECT_EQ(status(-32603), 200);
}

TEST(http_mcp, responses_are_told_from_what_comes_before) {
  EXPECT_TRUE(is_response(encode_result("1", "{}")));
  EXPECT_TRUE(is_response(encode_error("1", -32603, "m")));
  EXPECT_FALSE(is_response(encode_notification("m", "{}")));
  EXPECT_FALSE(is_response(encode_request("1", "m", "{}")));
  EXPECT_TRUE(is_error_response(encode_error("1", -32603, "m")));
  EXPECT_FALSE(is_error_response(encode_result("1", R"({"error":1})")));
}

TEST(http_mcp, events_are_framed_for_server_sent_events) {
  EXPECT_EQ(encode_event("3-1", "{\"a\":1}\n"), "event: message\nid: 3-1\ndata: {\"a\":1}\n\n");
  EXPECT_EQ(encode_event({}, "{}"), "event: message\ndata: {}\n\n");
  EXPECT_EQ(encode_priming_event("3-0"), "id: 3-0\ndata: \n\n");
  EXPECT_EQ(encode_retry(500), "retry: 500\n\n");
}

TEST(http_mcp, an_events_id_names_its_place) {
  EXPECT_EQ(read_event_place(to_string(event_place{12, 345})), (event_place{12, 345}));
  for (const auto* wrong : {"", "-", "1-", "-1", "1", "1-2-3", "a-1", "1-b", " 1-2", "1--2",
                            "99999999999999999999-1"}) {
    EXPECT_FALSE(read_event_place(wrong)) << wrong;
  }
}

TEST(http_mcp, header_values_are_decoded_where_they_say_so) {
  EXPECT_EQ(decode_header_value("plain"), "plain");
  EXPECT_EQ(decode_header_value("=?base64?SGVsbG8=?="), "Hello");
  EXPECT_EQ(decode_header_value("=?base64?"
                                "?="),
            "");
  EXPECT_EQ(decode_header_value("=?base64?="), "=?base64?=");
  EXPECT_EQ(decode_header_value("=?BASE64?SGVsbG8=?="), "=?BASE64?SGVsbG8=?=");
  EXPECT_FALSE(decode_header_value("=?base64?SGVsbG8?="));
}

TEST(http_mcp, an_error_that_says_to_come_again_is_known) {
  using std::chrono::seconds;
  auto error = [](std::string_view data) { return encode_error("1", -32603, "too much", data); };
  EXPECT_EQ(overload_wait(error(overload_data(seconds{2}))), seconds{2});
  EXPECT_EQ(overload_wait(error(R"({"reason":"other","retryAfterSeconds":2})")), std::nullopt);
  EXPECT_EQ(overload_wait(error(R"({"reason":"overloaded"})")), std::nullopt);
  EXPECT_EQ(overload_wait(error(R"("overloaded")")), std::nullopt);
  EXPECT_EQ(overload_wait(R"({"jsonrpc":"2.0","id":1,"result":{"error":{}}})"), std::nullopt);
}

} // namespace
} // namespace bulkhead
