#include "protocol/mcp_server.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/run_python.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

constexpr answer_form modern{true};
constexpr answer_form legacy{false};

answer_form revision(std::string_view text) {
  return {false, text};
}

void expect_modern_result(const json& result, bool cacheable) {
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "bulkhead");
  EXPECT_EQ(result.contains("ttlMs"), cacheable);
  EXPECT_EQ(result.contains("cacheScope"), cacheable);
  if (cacheable) {
    EXPECT_GE(result["ttlMs"], 0);
  }
}

void expect_legacy_result(const json& result) {
  for (const auto* key : {"resultType", "ttlMs", "cacheScope", "_meta"}) {
    EXPECT_FALSE(result.contains(key)) << key;
  }
}

TEST(mcp_server, initialize_names_itself_and_what_it_can) {
  auto result = json::parse(initialize_result("2025-06-18"));
  EXPECT_EQ(result["protocolVersion"], "2025-06-18");
  EXPECT_EQ(result["serverInfo"]["name"], "bulkhead");
  EXPECT_EQ(result["serverInfo"]["title"], "Bulkhead");
  EXPECT_EQ(result["serverInfo"]["version"], BULKHEAD_VERSION);
  EXPECT_EQ(result["capabilities"],
            json::parse(R"({"tools":{},"prompts":{},"completions":{},"logging":{},)"
                        R"("resources":{"subscribe":true,"listChanged":true}})"));
  auto source = result["serverInfo"]["icons"][0]["src"].get<std::string>();
  EXPECT_TRUE(source.starts_with("data:image/svg+xml;base64,"));
  expect_legacy_result(result);
}

TEST(mcp_server, instructions_are_short) {
  auto result = json::parse(discover_result());
  EXPECT_LE(result["instructions"].get<std::string>().size(), 500U);
  EXPECT_EQ(result["instructions"], json::parse(initialize_result("2025-11-25"))["instructions"]);
}

TEST(mcp_server, discover_offers_the_modern_revision_only) {
  auto result = json::parse(discover_result());
  EXPECT_EQ(result["supportedVersions"], json::array({"2026-07-28"}));
  EXPECT_TRUE(result["capabilities"].contains("tools"));
  EXPECT_FALSE(result["capabilities"]["tools"].contains("listChanged"));
  expect_modern_result(result, true);
  result = json::parse(discover_result({true, true, false}));
  EXPECT_EQ(result["capabilities"]["tools"], json::parse(R"({"listChanged":true})"));
  EXPECT_EQ(result["capabilities"]["prompts"], json::parse(R"({"listChanged":true})"));
  EXPECT_EQ(result["capabilities"]["resources"], json::parse(R"({"subscribe":true})"));
}

TEST(mcp_server, lists_in_both_eras) {
  for (const auto& [member, text] : std::vector<std::pair<std::string, std::string>>{
           {"tools", tool_list_result(R"({"name":"t"})", modern)},
           {"resources", resource_list_result(modern)},
           {"prompts", list_result("prompts", {}, modern)},
           {"resourceTemplates", template_list_result(modern)}}) {
    auto result = json::parse(text);
    EXPECT_TRUE(result[member].is_array());
    expect_modern_result(result, true);
  }
  auto tools = json::parse(tool_list_result(R"({"name":"t"})", legacy));
  EXPECT_EQ(tools, json::parse(R"({"tools":[{"name":"t"}]})"));
  EXPECT_EQ(json::parse(list_result("prompts", {}, legacy)), json::parse(R"({"prompts":[]})"));
}

TEST(mcp_server, the_resource_list_names_the_guide) {
  auto result = json::parse(resource_list_result(legacy));
  ASSERT_EQ(result["resources"].size(), 2U);
  EXPECT_EQ(result["resources"][1]["uri"], output_schema_uri);
  EXPECT_EQ(result["resources"][0]["uri"], "bulkhead://capabilities");
  EXPECT_EQ(result["resources"][0]["mimeType"], "text/markdown");
  expect_legacy_result(result);
}

TEST(mcp_server, the_resource_list_goes_on_with_what_runs_left) {
  const resource_page page{{{"bulkhead://artifacts/x/y", "y", "image/png", 12}}, "next"};
  auto result = json::parse(resource_list_result(legacy, page));
  ASSERT_EQ(result["resources"].size(), 3U);
  EXPECT_EQ(result["resources"][2], (json{{"uri", "bulkhead://artifacts/x/y"},
                                          {"name", "y"},
                                          {"mimeType", "image/png"},
                                          {"size", 12}}));
  EXPECT_EQ(result["nextCursor"], "next");
  result = json::parse(resource_list_result(modern, {page.entries, {}}, false));
  EXPECT_EQ(result["resources"].size(), 1U);
  EXPECT_FALSE(result.contains("nextCursor"));
  EXPECT_EQ(result["cacheScope"], "private");
}

TEST(mcp_server, templates) {
  const auto templates = json::parse(template_list_result(legacy))["resourceTemplates"];
  EXPECT_EQ(templates[0]["uriTemplate"], "bulkhead://output/{handle}/{stream}{?offset,length}");
  EXPECT_EQ(templates[1]["uriTemplate"], "bulkhead://artifacts/{handle}/{name}{?offset,length}");
}

TEST(mcp_server, a_part_of_what_a_run_left) {
  const resource_uri what{"0123456789abcdef0123456789abcdef", {}, "a b", 0, {}};
  auto result = json::parse(resource_part_result(what, {"x", 1, 1, "text/plain", {}}, modern));
  expect_modern_result(result, true);
  EXPECT_EQ(result["cacheScope"], "private");
  EXPECT_EQ(result["contents"][0]["uri"],
            "bulkhead://artifacts/0123456789abcdef0123456789abcdef/a%20b");
  EXPECT_EQ(result["contents"][0]["text"], "x");
}

TEST(mcp_server, the_guide_lists_allowed_servers) {
  server_catalogue catalogue;
  catalogue.servers.resize(3);
  catalogue.servers[0].name = "a-b";
  catalogue.servers[0].alias = "a_b";
  catalogue.servers[0].description = "first \"one\"";
  catalogue.servers[1].name = "hidden";
  catalogue.servers[1].alias = "hidden";
  catalogue.servers[2].name = "plain";
  catalogue.servers[2].alias = "plain";
  catalogue.rules.deny = {"hidden"};
  auto result = json::parse(capabilities_result("# Guide\n", catalogue, modern));
  expect_modern_result(result, true);
  EXPECT_EQ(result["cacheScope"], "private");
  ASSERT_EQ(result["contents"].size(), 1U);
  EXPECT_EQ(result["contents"][0]["uri"], "bulkhead://capabilities");
  EXPECT_EQ(result["contents"][0]["mimeType"], "text/markdown");
  EXPECT_EQ(result["contents"][0]["text"], "# Guide\n\n## Configured servers\n"
                                           "- `a-b` → `mcp_a_b`: first \"one\"\n"
                                           "- `plain` → `mcp_plain`\n");
}

TEST(mcp_server, the_guide_says_when_there_are_no_servers) {
  auto result = json::parse(capabilities_result("x", {}, legacy));
  EXPECT_EQ(result["contents"][0]["text"], "x\n## Configured servers\nNone.\n");
  expect_legacy_result(result);
}

TEST(mcp_server, the_guide_says_why_every_server_is_denied) {
  server_catalogue catalogue;
  catalogue.servers.emplace_back().name = "a";
  catalogue.rules.closed = "every server is denied until /c.json is repaired: no JSON";
  auto result = json::parse(capabilities_result("x", catalogue, legacy));
  EXPECT_EQ(result["contents"][0]["text"],
            "x\n## Configured servers\nNone: every server is denied until /c.json is repaired: no "
            "JSON\n");
}

TEST(mcp_server, unknown_resources_are_refused_by_era) {
  EXPECT_EQ(resource_not_found("a://b", legacy).code, -32002);
  EXPECT_EQ(resource_not_found("a://b", modern).code, -32602);
  EXPECT_EQ(json::parse(resource_not_found("a://\"b", modern).data)["uri"], "a://\"b");
}

TEST(mcp_server, call_results_are_shaped_for_the_client) {
  const auto* rendered =
      R"({"content":[{"type":"text","text":"hi"}],"structuredContent":{"status":"success"},)"
      R"("isError":false})";
  auto full = json::parse(rendered);
  EXPECT_EQ(json::parse(call_result(rendered, revision("2025-11-25"))), full);
  EXPECT_EQ(json::parse(call_result(rendered, revision("2025-06-18"))), full);
  for (const auto* old : {"2025-03-26", "2024-11-05", "2024-10-07"}) {
    auto result = json::parse(call_result(rendered, revision(old)));
    EXPECT_FALSE(result.contains("structuredContent")) << old;
    EXPECT_EQ(result["content"], full["content"]);
    EXPECT_EQ(result["isError"], false);
  }
  auto result = json::parse(call_result(rendered, modern));
  expect_modern_result(result, false);
  EXPECT_EQ(result["structuredContent"], full["structuredContent"]);
}

TEST(mcp_server, an_unreadable_rendering_is_still_a_valid_result) {
  auto result = json::parse(call_result("{", modern));
  EXPECT_EQ(result["isError"], true);
  expect_modern_result(result, false);
}

TEST(mcp_server, empty_results) {
  EXPECT_EQ(empty_result(legacy), "{}");
  expect_modern_result(json::parse(empty_result(modern)), false);
}

TEST(mcp_server, a_result_that_asks_is_not_complete) {
  auto result = json::parse(result_that_asks(R"("requestState":"x")"));
  EXPECT_EQ(result["resultType"], "input_required");
  EXPECT_EQ(result["requestState"], "x");
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "bulkhead");
}

TEST(mcp_server, subscriptions_keep_the_id_and_its_type) {
  for (const auto* id : {"0", R"("a")"}) {
    auto end = json::parse(subscription_end_result(id));
    EXPECT_EQ(end["_meta"]["io.modelcontextprotocol/subscriptionId"], json::parse(id));
    EXPECT_EQ(end["resultType"], "complete");
  }
}

TEST(mcp_server, notification_params) {
  EXPECT_EQ(json::parse(progress_params(R"("t")", 3, "say \"x\"")),
            json::parse(R"({"progressToken":"t","progress":3,"message":"say \"x\""})"));
  EXPECT_EQ(json::parse(log_params(log_severity::warning, R"({"a":1})")),
            json::parse(R"({"level":"warning","logger":"bulkhead","data":{"a":1}})"));
}

} // namespace
} // namespace bulkhead
