#include "protocol/json_rpc.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

constexpr scan_limits roomy{1 << 20};

TEST(json_rpc, reads_requests) {
  const auto text = R"({"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"a":[1]}})";
  const auto message = parse_rpc(text, roomy);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, rpc_kind::request);
  EXPECT_EQ(message->id, "0");
  EXPECT_EQ(message->method, "tools/call");
  EXPECT_EQ(message->params, R"({"a":[1]})");

  const auto named = parse_rpc(R"({"method":"ping","id":"","jsonrpc":"2.0"})", roomy);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->kind, rpc_kind::request);
  EXPECT_EQ(named->id, "\"\"");
  EXPECT_EQ(named->params, "");
}

TEST(json_rpc, spells_equal_ids_alike) {
  const auto id = [](std::string_view token) {
    const auto text = R"({"jsonrpc":"2.0","method":"m","id":)" + std::string{token} + "}";
    const auto message = parse_rpc(text, roomy);
    return message ? message->id : message.error().message;
  };
  EXPECT_EQ(id(R"("a\u0062\/")"), R"("ab/")");
  EXPECT_EQ(id(R"("1")"), R"("1")");
  EXPECT_EQ(id("1"), "1");
  EXPECT_EQ(id("-7"), "-7");
  EXPECT_EQ(id("12345678901234567890123"), "12345678901234567890123");
}

TEST(json_rpc, reads_notifications_and_responses) {
  const auto note = parse_rpc(R"({"jsonrpc":"2.0","method":"notifications/x","params":[]})", roomy);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->kind, rpc_kind::notification);
  EXPECT_EQ(note->id, "");
  EXPECT_EQ(note->params, "[]");

  const auto result = parse_rpc(R"({"jsonrpc":"2.0","id":3,"result":null})", roomy);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->kind, rpc_kind::response);
  EXPECT_EQ(result->result, "null");
  EXPECT_EQ(result->error, "");

  const auto failure = parse_rpc(R"({"jsonrpc":"2.0","id":"q","error":{"code":-1}})", roomy);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, rpc_kind::response);
  EXPECT_EQ(failure->id, "\"q\"");
  EXPECT_EQ(failure->error, R"({"code":-1})");
}

TEST(json_rpc, an_error_may_lack_the_id_of_what_it_answers) {
  for (const auto* text : {R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700}})",
                           R"({"jsonrpc":"2.0","error":{"code":-32700}})"}) {
    const auto message = parse_rpc(text, roomy);
    ASSERT_TRUE(message) << text;
    EXPECT_EQ(message->kind, rpc_kind::response);
    EXPECT_EQ(message->id, "");
  }
}

TEST(json_rpc, refuses_what_is_no_message) {
  for (const auto* text : {
           "",
           "{",
           "7",
           "\"x\"",
           "{}",
           R"([{"jsonrpc":"2.0","id":1,"method":"m"}])",
           R"({"id":1,"method":"m"})",
           R"({"jsonrpc":"1.0","id":1,"method":"m"})",
           R"({"jsonrpc":2.0,"id":1,"method":"m"})",
           R"({"jsonrpc":"2.0"})",
           R"({"jsonrpc":"2.0","id":1})",
           R"({"jsonrpc":"2.0","id":1,"method":1})",
           R"({"jsonrpc":"2.0","id":1,"method":null})",
           R"({"jsonrpc":"2.0","id":null,"method":"m"})",
           R"({"jsonrpc":"2.0","id":1.5,"method":"m"})",
           R"({"jsonrpc":"2.0","id":1e3,"method":"m"})",
           R"({"jsonrpc":"2.0","id":true,"method":"m"})",
           R"({"jsonrpc":"2.0","id":[1],"method":"m"})",
           R"({"jsonrpc":"2.0","id":{},"method":"m"})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","params":1})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","result":1})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","error":{}})",
           R"({"jsonrpc":"2.0","id":1,"result":1,"error":{}})",
           R"({"jsonrpc":"2.0","id":1,"error":"x"})",
           R"({"jsonrpc":"2.0","id":1,"error":null})",
           R"({"jsonrpc":"2.0","id":null,"result":1})",
           R"({"jsonrpc":"2.0","result":1})",
           R"({"jsonrpc":"2.0","id":[],"error":{}})",
           R"({"jsonrpc":"2.0","id":1,"id":2,"method":"m"})",
       }) {
    const auto message = parse_rpc(text, roomy);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code, errc::malformed) << text;
  }
  const auto batch = parse_rpc("[]", roomy);
  EXPECT_NE(batch.error().message.find("batch"), std::string::npos);
}

TEST(json_rpc, holds_limits) {
  const auto long_id = R"({"jsonrpc":"2.0","method":"m","id":")" + std::string(600, 'x') + "\"}";
  EXPECT_EQ(parse_rpc(long_id, roomy).error().code, errc::too_large);
  EXPECT_EQ(parse_rpc(R"({"jsonrpc":"2.0","method":"m"})", {10}).error().code, errc::too_large);
}

TEST(json_rpc, encodes_one_line_each) {
  EXPECT_EQ(encode_request("0", "tools/call", "{\n\"a\":1}"),
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/call\",\"params\":{ \"a\":1}}\n");
  EXPECT_EQ(encode_request("\"x\"", "ping", ""),
            "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\n");
  EXPECT_EQ(encode_notification("n\"", "{}"),
            "{\"jsonrpc\":\"2.0\",\"method\":\"n\\\"\",\"params\":{}}\n");
  EXPECT_EQ(encode_result("7", "[1,\r\n2]"), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[1,  2]}\n");
  EXPECT_EQ(encode_error("7", rpc_code::method_not_found, "no\n"),
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"no\\n\"}}\n");
  EXPECT_EQ(encode_error("", rpc_code::parse_error, "bad", "{\"at\":1}"),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"bad\","
            "\"data\":{\"at\":1}}}\n");
}

TEST(json_rpc, reads_what_it_encodes) {
  const auto line = encode_request("\"é\"", "m", "{\"k\":\"v\"}");
  const auto message = parse_rpc(line, roomy);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, "\"é\"");
  EXPECT_EQ(message->params, "{\"k\":\"v\"}");
  EXPECT_EQ(parse_rpc(encode_error("1", 5, "x"), roomy)->kind, rpc_kind::response);
}

} // namespace
} // namespace bulkhead
