#include "protocol/mcp_request.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

constexpr scan_limits bounds{1 << 20};

/// Parses `text` and reads it; the text must outlive the result.
tl::expected<mcp_request, rpc_refusal> read(const std::string& text) {
  auto message = parse_rpc(text, bounds);
  EXPECT_TRUE(message) << text;
  return read_mcp_request(*message, bounds);
}

std::string request(std::string_view method, std::string_view params) {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + std::string{method} + R"(","params":)" +
         std::string{params} + "}";
}

std::string with_meta(std::string_view meta) {
  return R"({"_meta":)" + std::string{meta} + "}";
}

const std::string modern_meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                R"("io.modelcontextprotocol/clientCapabilities":{}})";

rpc_refusal refusal_of(const std::string& text) {
  auto result = read(text);
  EXPECT_FALSE(result) << text;
  return result ? rpc_refusal{} : result.error();
}

TEST(mcp_request, without_meta_is_legacy) {
  auto text = std::string{R"({"jsonrpc":"2.0","id":0,"method":"tools/list"})"};
  auto result = read(text);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->modern);
  EXPECT_EQ(result->progress_token, "");
}

TEST(mcp_request, a_progress_token_alone_does_not_make_it_modern) {
  auto text = request("tools/call", with_meta(R"({"progressToken":0})"));
  auto result = read(text);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->modern);
  EXPECT_EQ(result->progress_token, "0");
}

TEST(mcp_request, progress_tokens_keep_their_type) {
  for (const auto* token : {"0", "7", R"("0")", R"("tok en")"}) {
    auto text = request("tools/call", with_meta(std::string{R"({"progressToken":)"} + token + "}"));
    auto result = read(text);
    ASSERT_TRUE(result) << token;
    EXPECT_EQ(result->progress_token, token);
  }
}

TEST(mcp_request, unusable_progress_tokens_are_refused) {
  for (const auto* token : {"1.5", "null", "true", "{}", "[1]"}) {
    auto text = request("tools/call", with_meta(std::string{R"({"progressToken":)"} + token + "}"));
    EXPECT_EQ(refusal_of(text).code, rpc_code::invalid_params) << token;
  }
}

TEST(mcp_request, modern_meta_is_recognised) {
  auto text = request("tools/list", with_meta(modern_meta));
  auto result = read(text);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->modern);
  EXPECT_FALSE(result->log_level);
}

TEST(mcp_request, modern_meta_lacking_a_required_key_is_refused) {
  for (const auto* meta : {R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})",
                           R"({"io.modelcontextprotocol/clientCapabilities":{}})",
                           R"({"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}})",
                           R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                           R"("io.modelcontextprotocol/clientCapabilities":[]})",
                           R"({"io.modelcontextprotocol/protocolVersion":7,)"
                           R"("io.modelcontextprotocol/clientCapabilities":{}})"}) {
    EXPECT_EQ(refusal_of(request("tools/list", with_meta(meta))).code, rpc_code::invalid_params)
        << meta;
  }
}

TEST(mcp_request, methods_of_the_modern_era_need_its_meta) {
  EXPECT_EQ(refusal_of(request("server/discover", "{}")).code, rpc_code::invalid_params);
  EXPECT_EQ(refusal_of(request("subscriptions/listen", "{}")).code, rpc_code::invalid_params);
}

TEST(mcp_request, an_unknown_version_is_refused_with_the_known_ones) {
  auto refusal = refusal_of(request(
      "server/discover", with_meta(R"({"io.modelcontextprotocol/protocolVersion":"2031-01-01"})")));
  EXPECT_EQ(refusal.code, rpc_code::unsupported_protocol_version);
  auto data = nlohmann::json::parse(refusal.data);
  EXPECT_EQ(data["supported"], nlohmann::json::array({"2026-07-28"}));
  EXPECT_EQ(data["requested"], "2031-01-01");
}

TEST(mcp_request, initialize_is_legacy_unless_its_meta_is_soundly_modern) {
  auto plain = request("initialize", R"({"protocolVersion":"2025-06-18"})");
  ASSERT_TRUE(read(plain));
  EXPECT_FALSE(read(plain)->modern);
  auto partly = request("initialize",
                        with_meta(R"({"io.modelcontextprotocol/protocolVersion":"2025-11-25"})"));
  ASSERT_TRUE(read(partly));
  EXPECT_FALSE(read(partly)->modern);
  auto modern = request("initialize", with_meta(modern_meta));
  ASSERT_TRUE(read(modern));
  EXPECT_TRUE(read(modern)->modern);
}

TEST(mcp_request, modern_log_levels) {
  auto meta = [](const char* level) {
    return with_meta(modern_meta.substr(0, modern_meta.size() - 1) +
                     R"(,"io.modelcontextprotocol/logLevel":)" + level + "}");
  };
  auto text = request("tools/call", meta(R"("notice")"));
  auto result = read(text);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->log_level, log_severity::notice);
  EXPECT_EQ(refusal_of(request("tools/call", meta(R"("loud")"))).code, rpc_code::invalid_params);
  EXPECT_EQ(refusal_of(request("tools/call", meta("3"))).code, rpc_code::invalid_params);
}

TEST(mcp_request, params_must_be_an_object) {
  EXPECT_EQ(refusal_of(request("tools/list", "[1]")).code, rpc_code::invalid_params);
  EXPECT_EQ(refusal_of(request("tools/list", R"({"_meta":"x"})")).code, rpc_code::invalid_params);
}

TEST(mcp_request, arguments_are_found_by_name) {
  auto text = request("x", R"({"a":"b\n","n":null,"i":3})");
  auto result = read(text);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text("a"), "b\n");
  EXPECT_EQ(result->text("i"), std::nullopt);
  EXPECT_EQ(result->text("missing"), std::nullopt);
  EXPECT_EQ(result->find("n"), "");
  EXPECT_EQ(result->find("i"), "3");
}

TEST(mcp_request, revisions_are_echoed_if_known) {
  for (const auto* known : {"2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    EXPECT_EQ(negotiate_revision(known), known);
  }
  EXPECT_EQ(negotiate_revision("1999-01-01"), "2025-11-25");
  EXPECT_EQ(negotiate_revision("2026-07-28"), "2025-11-25");
  EXPECT_EQ(negotiate_revision(""), "2025-11-25");
}

TEST(mcp_request, severities_have_names) {
  for (int i = 0; i < 8; ++i) {
    auto severity = static_cast<log_severity>(i);
    EXPECT_EQ(severity_from_string(to_string(severity)), severity);
  }
  EXPECT_EQ(severity_from_string("fatal"), std::nullopt);
}

rpc_refusal explain(const std::string& text, std::string& id) {
  auto message = parse_rpc(text, bounds);
  EXPECT_FALSE(message) << text;
  return explain_unreadable(text, message ? error{} : message.error(), bounds, id);
}

TEST(explain_unreadable, garbage_is_a_parse_error_without_id) {
  for (const auto* text :
       {"hello", "{", R"({"jsonrpc":"2.0","id":1)", "\xff", R"({"id":1,"id":1})"}) {
    std::string id;
    EXPECT_EQ(explain(text, id).code, rpc_code::parse_error) << text;
    EXPECT_EQ(id, "");
  }
}

TEST(explain_unreadable, json_that_is_no_message_is_an_invalid_request) {
  std::string id;
  EXPECT_EQ(explain(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", id).code,
            rpc_code::invalid_request);
  EXPECT_EQ(id, "");
  EXPECT_EQ(explain("123", id).code, rpc_code::invalid_request);
  EXPECT_EQ(explain(R"({"jsonrpc":"1.0","id":"a","method":"ping"})", id).code,
            rpc_code::invalid_request);
  EXPECT_EQ(id, R"("a")");
}

TEST(explain_unreadable, half_a_surrogate_pair_is_told_to_who_asked) {
  for (const auto* half :
       {R"(\ud800)", R"(\\\udc00)", R"(\ud800\ud800)", R"(\ud83d\ude00\udBFF)"}) {
    auto text = R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":")" +
                std::string{half} + R"("}})";
    std::string id;
    auto refusal = explain(text, id);
    EXPECT_EQ(id, "7") << half;
    EXPECT_NE(refusal.message.find("surrogate"), std::string::npos) << refusal.message;
  }
  std::string id;
  explain(R"({"jsonrpc":"2.0","id":7,"method":"\ud8)", id);
  EXPECT_EQ(id, "");
}

TEST(explain_unreadable, batches_are_refused_in_words) {
  std::string id;
  EXPECT_NE(explain("[]", id).message.find("batch"), std::string::npos);
}

TEST(explain_unreadable, texts_over_a_limit_are_invalid_requests) {
  std::string id;
  std::string deep(100, '[');
  deep += std::string(100, ']');
  EXPECT_EQ(explain(deep, id).code, rpc_code::invalid_request);
}

} // namespace
} // namespace bulkhead
