#include "protocol/mcp_client_protocol.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead::upstream {
namespace {

using nlohmann::json;

constexpr scan_limits bounds{1 << 20};

json parsed(const std::string& line) {
  EXPECT_TRUE(line.ends_with('\n'));
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  return json::parse(line);
}

/// A message as a server sends it; the text must outlive it.
rpc_message message(const std::string& text) {
  auto result = parse_rpc(text, bounds);
  EXPECT_TRUE(result) << text;
  return result ? *result : rpc_message{};
}

TEST(mcp_client_protocol, asks_for_discovery_with_the_modern_metadata) {
  auto request = parsed(encode_discover(1));
  EXPECT_EQ(request["method"], "server/discover");
  EXPECT_EQ(request["id"], 1);
  auto meta = request["params"]["_meta"];
  EXPECT_EQ(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  EXPECT_EQ(meta["io.modelcontextprotocol/clientCapabilities"], json::object());
  EXPECT_EQ(meta["io.modelcontextprotocol/clientInfo"]["name"], "bulkhead");
}

TEST(mcp_client_protocol, initializes_without_capabilities) {
  auto request = parsed(encode_initialize(7));
  EXPECT_EQ(request["method"], "initialize");
  EXPECT_EQ(request["params"]["protocolVersion"], "2025-11-25");
  EXPECT_EQ(request["params"]["capabilities"], json::object());
  EXPECT_EQ(request["params"]["clientInfo"]["version"], BULKHEAD_VERSION);
  auto note = parsed(encode_initialized());
  EXPECT_EQ(note["method"], "notifications/initialized");
  EXPECT_FALSE(note.contains("id"));
}

TEST(mcp_client_protocol, list_requests_carry_cursor_and_metadata) {
  EXPECT_EQ(parsed(encode_list(2, era::legacy, ""))["params"], json::object());
  EXPECT_EQ(parsed(encode_list(2, era::legacy, "a\"b"))["params"], json({{"cursor", "a\"b"}}));
  auto first = parsed(encode_list(2, era::modern, ""))["params"];
  EXPECT_EQ(first.size(), 1U);
  EXPECT_TRUE(first.contains("_meta"));
  auto later = parsed(encode_list(2, era::modern, "x"))["params"];
  EXPECT_EQ(later["cursor"], "x");
  EXPECT_TRUE(later.contains("_meta"));
}

TEST(mcp_client_protocol, call_arguments_are_spliced_into_one_line) {
  auto legacy = encode_call(3, era::legacy, "naïve \"tool\"", "{\n \"a\": [1,\r\n2]}");
  auto request = parsed(legacy);
  EXPECT_EQ(request["method"], "tools/call");
  EXPECT_EQ(request["params"]["name"], "naïve \"tool\"");
  EXPECT_EQ(request["params"]["arguments"], json::parse(R"({"a":[1,2]})"));
  EXPECT_FALSE(request["params"].contains("_meta"));
  EXPECT_TRUE(parsed(encode_call(3, era::modern, "t", "{}"))["params"].contains("_meta"));
}

TEST(mcp_client_protocol, abilities_are_declared_once_or_with_each_request) {
  client_abilities abilities;
  abilities.elicitation_form = abilities.roots = true;
  auto declared = json::parse(R"({"elicitation":{"form":{}},"roots":{}})");
  EXPECT_EQ(parsed(encode_initialize(1, abilities))["params"]["capabilities"], declared);
  auto of = [](const json& request) {
    return request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
  };
  EXPECT_EQ(of(parsed(encode_discover(1, abilities))), declared);
  EXPECT_EQ(of(parsed(encode_list(1, era::modern, "", abilities))), declared);
  EXPECT_EQ(of(parsed(encode_call(1, era::modern, "t", "{}", {abilities, false, {}, {}}))),
            declared);
}

TEST(mcp_client_protocol, progress_is_asked_for_by_the_requests_id) {
  call_details wanted;
  wanted.progress = true;
  EXPECT_EQ(parsed(encode_call(9, era::legacy, "t", "{}", wanted))["params"]["_meta"],
            json({{"progressToken", 9}}));
  auto meta = parsed(encode_call(9, era::modern, "t", "{}", wanted))["params"]["_meta"];
  EXPECT_EQ(meta["progressToken"], 9);
  EXPECT_EQ(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

TEST(mcp_client_protocol, a_call_made_again_has_the_input_and_the_state_as_it_came) {
  call_details details;
  details.responses = {{"a \"key\"", R"({"action":
 "accept"})"},
                       {"b", R"({"roots":[]})"}};
  details.state = R"("s\u0041\/é")";
  auto line = encode_call(5, era::modern, "t", R"({"x":1})", details);
  EXPECT_NE(line.find(R"("requestState":"s\u0041\/é")"), std::string::npos) << line;
  auto params = parsed(line)["params"];
  EXPECT_EQ(params["arguments"], json({{"x", 1}}));
  EXPECT_EQ(params["inputResponses"],
            json({{"a \"key\"", {{"action", "accept"}}}, {"b", {{"roots", json::array()}}}}));
  EXPECT_FALSE(parsed(encode_call(5, era::modern, "t", "{}"))["params"].contains("inputResponses"));
  EXPECT_FALSE(parsed(encode_call(5, era::modern, "t", "{}"))["params"].contains("requestState"));
}

TEST(mcp_client_protocol, cancels_by_the_request_id) {
  auto note = parsed(encode_cancelled(12, "because"));
  EXPECT_EQ(note["method"], "notifications/cancelled");
  EXPECT_EQ(note["params"], json({{"requestId", 12}, {"reason", "because"}}));
}

TEST(mcp_client_protocol, answers_pings_and_roots_and_refuses_the_rest) {
  std::string ping = R"({"jsonrpc":"2.0","id":"p","method":"ping"})";
  EXPECT_EQ(parsed(answer_request(message(ping))),
            json::parse(R"({"jsonrpc":"2.0","id":"p","result":{}})"));
  std::string roots = R"({"jsonrpc":"2.0","id":0,"method":"roots/list"})";
  EXPECT_EQ(parsed(answer_request(message(roots)))["error"]["code"], -32601);
  EXPECT_EQ(parsed(answer_request(message(roots), {"file:///a", "file:///b"}))["result"],
            json::parse(R"({"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]})"));
  std::string sampling =
      R"({"jsonrpc":"2.0","id":4,"method":"sampling/createMessage","params":{}})";
  EXPECT_EQ(parsed(answer_request(message(sampling)))["error"]["code"], -32601);
}

TEST(mcp_client_protocol, reads_only_plain_integers_as_response_ids) {
  EXPECT_EQ(response_id("17"), 17U);
  for (const char* other : {"", "\"17\"", "-1", "1.0", "99999999999999999999", "1e3"}) {
    EXPECT_FALSE(response_id(other)) << other;
  }
}

TEST(mcp_client_protocol, discovery_tells_the_eras_apart) {
  auto modern = [](const std::string& rest) {
    std::string text = R"({"jsonrpc":"2.0","id":1,)" + rest + "}";
    return read_discover(message(text));
  };
  auto found = modern(R"("result":{"supportedVersions":["2027-01-01","2026-07-28"],
    "capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":
    {"name":"n","title":"T","version":"1.2"}}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (identity{"n", "T", "1.2", "2026-07-28", true}));
  EXPECT_FALSE(
      modern(R"("result":{"supportedVersions":["2026-07-28"],"capabilities":{}})")->has_tools);

  // Errors that only a modern server sends.
  EXPECT_TRUE(modern(R"("error":{"code":-32020,"message":"m"})"));
  EXPECT_TRUE(
      modern(R"("error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{}}})"));
  EXPECT_TRUE(modern(R"("error":{"code":-32022,"message":"m"})"));
  EXPECT_TRUE(
      modern(R"("error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}})"));
  EXPECT_TRUE(modern(R"("error":{"code":-32021,"message":"m"})")->has_tools);

  // It names other revisions, or doesn't know the method, or answers anything with anything.
  EXPECT_FALSE(
      modern(R"("error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}})"));
  EXPECT_FALSE(modern(R"("error":{"code":-32601,"message":"Method not found"})"));
  EXPECT_FALSE(modern(R"("error":{"code":-32602,"message":"m"})"));
  EXPECT_FALSE(modern(R"("error":{})"));
  EXPECT_FALSE(modern(R"("result":{})"));
  EXPECT_FALSE(modern(R"("result":[1])"));
  EXPECT_FALSE(modern(R"("result":{"supportedVersions":["2025-11-25"]})"));
  EXPECT_FALSE(modern(R"("result":{"supportedVersions":"2026-07-28"})"));
}

TEST(mcp_client_protocol, accepts_the_legacy_revisions_and_no_other) {
  for (const char* revision :
       {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"}) {
    auto text = json({{"protocolVersion", revision},
                      {"capabilities", {{"tools", json::object()}}},
                      {"serverInfo", {{"name", "s"}, {"version", "1"}}}})
                    .dump();
    auto found = read_initialize(text);
    ASSERT_TRUE(found) << revision;
    EXPECT_EQ(*found, (identity{"s", "", "1", revision, true}));
  }
  auto unknown = read_initialize(R"({"protocolVersion":"1999-01-01","capabilities":{}})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::server_failed);
  EXPECT_NE(unknown.error().message.find("1999-01-01"), std::string::npos);
  EXPECT_EQ(read_initialize("{}").error().code, errc::malformed);
  EXPECT_EQ(read_initialize("[]").error().code, errc::malformed);
  EXPECT_EQ(read_initialize(R"({"protocolVersion":1e999})").error().code, errc::malformed);
}

TEST(mcp_client_protocol, names_of_servers_are_made_printable) {
  auto found = read_initialize(
      R"({"protocolVersion":"2025-11-25","serverInfo":{"name":"a\u001b[31m\nb","version":7}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "a [31m b");
  EXPECT_EQ(found->version, "");
  EXPECT_FALSE(found->has_tools);
}

TEST(mcp_client_protocol, failures_are_read_leniently_and_cut) {
  EXPECT_EQ(read_failure(R"({"code":-32602,"message":"no"})"), (failure{-32602, "no"}));
  EXPECT_EQ(read_failure(R"({"code":"x","message":5})"), (failure{0, ""}));
  EXPECT_EQ(read_failure("{}"), (failure{0, ""}));
  auto large = read_failure(json({{"code", 1}, {"message", std::string(5000, 'x')}}).dump());
  EXPECT_EQ(large.message.size(), 1024U);
}

TEST(mcp_client_protocol, failures_tell_what_a_call_needs) {
  EXPECT_EQ(read_failure(R"({"code":-32021,"message":"m","data":{"requiredCapabilities":)"
                         R"({"sampling":{},"elicitation":{}}}})")
                .needs,
            "a client with elicitation, sampling");
  EXPECT_EQ(read_failure(R"({"code":-32021,"message":"m","data":[1]})").needs,
            "a client with more capabilities");
  EXPECT_EQ(read_failure(R"({"code":-32042,"message":"m","data":{"elicitations":)"
                         R"([{"mode":"url","url":"https://a.example/x"},5]}})")
                .needs,
            "somebody to open https://a.example/x");
  EXPECT_EQ(read_failure(R"({"code":-32042,"message":"m"})").needs, "somebody to open a page");
}

TEST(mcp_client_protocol, recognises_how_servers_say_that_a_tool_is_unknown) {
  EXPECT_TRUE(tells_unknown_tool({-32602, "Unknown tool: frob"}, "frob"));
  EXPECT_TRUE(tells_unknown_tool({-32602, "MCP error -32602: Tool Frob not found"}, "frob"));
  EXPECT_TRUE(tells_unknown_tool({-32603, "no such tool"}, "frob"));
  EXPECT_FALSE(tells_unknown_tool({-32602, "Tool frob: file x not fou"}, "frob"));
  EXPECT_FALSE(tells_unknown_tool({-32602, "file not found"}, "frob"));
  EXPECT_FALSE(tells_unknown_tool({-32601, "Method not found"}, "frob"));
}

TEST(mcp_client_protocol, time_to_live_is_kept_in_bounds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(read_time_to_live(R"({"tools":[],"ttlMs":60000})"), milliseconds{60'000});
  EXPECT_EQ(read_time_to_live(R"({"ttlMs":0})"), milliseconds{30'000});
  EXPECT_EQ(read_time_to_live(R"({"ttlMs":99999999999999999999999})"), milliseconds{3'600'000});
  EXPECT_FALSE(read_time_to_live(R"({"tools":[]})"));
  EXPECT_FALSE(read_time_to_live(R"({"ttlMs":"60000"})"));
}

} // namespace
} // namespace bulkhead::upstream
