#include "protocol/mcp_http_headers.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead::upstream {
namespace {

using nlohmann::json;

json annotated(const json& type, const json& name) {
  return {{"type", "object"}, {"properties", {{"p", {{"type", type}, {"x-mcp-header", name}}}}}};
}

TEST(mcp_http_headers, values_that_no_header_can_hold_are_encoded) {
  EXPECT_EQ(encode_header_value("us west 1"), "us west 1");
  EXPECT_EQ(encode_header_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
  EXPECT_EQ(encode_header_value(" padded"), "=?base64?IHBhZGRlZA==?=");
  EXPECT_EQ(encode_header_value("a\r\nb"), "=?base64?YQ0KYg==?=");
  EXPECT_EQ(encode_header_value("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
  EXPECT_EQ(encode_header_value(""), "=?base64?"
                                     "?=");
  EXPECT_EQ(encode_header_value("a\tb"), "=?base64?YQli?=");
}

TEST(mcp_http_headers, annotations_are_read_where_properties_lead) {
  auto schema = json::parse(R"({"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "x-mcp-header":{"type":"string"},
    "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
    "example":{"type":"object","default":{"x-mcp-header":"not one"}}}})");
  auto headers = read_param_headers(schema);
  ASSERT_TRUE(headers) << headers.error().message;
  EXPECT_EQ(*headers, (std::vector<param_header>{{{"deep", "n"}, "N"}, {{"region"}, "Region"}}));
  EXPECT_TRUE(read_param_headers(json::object())->empty());
}

TEST(mcp_http_headers, annotations_that_are_not_allowed_make_a_tool_unusable) {
  for (const auto& schema : std::vector<json>{
           annotated("string", ""), annotated("string", "My Region"), annotated("string", "A:B"),
           annotated("string", "Région"), annotated("string", "R\t1"), annotated("string", 1),
           annotated("object", "A"), annotated("array", "A"), annotated("null", "A"),
           annotated("number", "A"), annotated(json::array({"string", "null"}), "A"),
           json::parse(R"({"properties":{"a":{"type":"string","x-mcp-header":"Same"},
                                         "b":{"type":"string","x-mcp-header":"sAME"}}})"),
           json::parse(R"({"type":"string","x-mcp-header":"Top"})"),
           json::parse(R"({"properties":{"a":{"type":"array",
                           "items":{"type":"string","x-mcp-header":"A"}}}})"),
           json::parse(R"({"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]})"),
           json::parse(R"({"$defs":{"a":{"type":"string","x-mcp-header":"A"}}})")}) {
    EXPECT_FALSE(read_param_headers(schema)) << schema;
  }
}

TEST(mcp_http_headers, arguments_become_headers) {
  std::vector<param_header> wanted = {{{"s"}, "S"}, {{"n"}, "N"},      {{"b"}, "B"},
                                      {{"x"}, "X"}, {{"d", "e"}, "E"}, {{"big"}, "Big"},
                                      {{"f"}, "F"}, {{"o"}, "O"},      {{"gone"}, "Gone"}};
  auto headers = encode_param_headers(
      wanted, R"({"s":"é","n":42.0,"b":false,"x":null,"d":{"e":"in"},"big":1e300,"f":1.5,"o":{}})");
  EXPECT_EQ(headers,
            (std::vector<std::pair<std::string, std::string>>{{"Mcp-Param-S", "=?base64?w6k=?="},
                                                              {"Mcp-Param-N", "42"},
                                                              {"Mcp-Param-B", "false"},
                                                              {"Mcp-Param-E", "in"}}));
}

TEST(mcp_http_headers, tools_that_cannot_be_used_leave_the_page) {
  auto page = json{{"tools",
                    {{{"name", "good"}, {"inputSchema", annotated("string", "Region")}},
                     {{"name", "bad"}, {"inputSchema", annotated("number", "Region")}},
                     {{"name", "plain"}, {"inputSchema", json::object()}}}},
                   {"nextCursor", "more"}};
  auto found = read_page_headers(page.dump());
  EXPECT_EQ(found.tools.size(), 1U);
  EXPECT_EQ(found.tools.count("good"), 1U);
  ASSERT_EQ(found.refused.size(), 1U);
  EXPECT_NE(found.refused[0].find("\"bad\""), std::string::npos);
  auto left = json::parse(found.result);
  EXPECT_EQ(left["tools"].size(), 2U);
  EXPECT_EQ(left["nextCursor"], "more");
  EXPECT_TRUE(read_page_headers(R"({"tools":[]})").result.empty());
  EXPECT_TRUE(read_page_headers(R"({"tools":"x-mcp-header"})").result.empty());
}

} // namespace
} // namespace bulkhead::upstream
