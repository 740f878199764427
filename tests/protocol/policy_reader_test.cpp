#include "protocol/policy_reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;
using weight = policy_finding::weight;

policy read(const std::vector<std::string>& texts) {
  policy rules;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto findings = read_policy(json::parse(texts[i]), fmt::format("/{}.json", i), rules);
    for (const auto& each : findings) {
      ADD_FAILURE() << each.message;
    }
  }
  return rules;
}

TEST(policy_reader, reads_every_rule) {
  auto rules = read({R"({"deny":["a"],"allow":["b"],"readOnly":["c"],"confirm":["d/delete_*"],
                         "limits":{"callsPerRun":3,"callsPerMinute":4,"perTool":{"e/f":5}}})"});
  EXPECT_EQ(rules.deny, (std::vector<policy_pattern>{{"a", "/0.json"}}));
  EXPECT_EQ(rules.allow, (std::vector<policy_pattern>{{"b", "/0.json"}}));
  EXPECT_EQ(rules.read_only, (std::vector<policy_pattern>{{"c", "/0.json"}}));
  EXPECT_EQ(rules.confirm, (std::vector<policy_pattern>{{"d/delete_*", "/0.json"}}));
  EXPECT_EQ(rules.confirm_destructive, "");
  EXPECT_EQ(rules.calls_per_run, (std::vector<policy_limit>{{3, "/0.json", ""}}));
  EXPECT_EQ(rules.calls_per_minute, (std::vector<policy_limit>{{4, "/0.json", ""}}));
  EXPECT_EQ(rules.calls_per_tool, (std::vector<policy_limit>{{5, "/0.json", "e/f"}}));
}

TEST(policy_reader, short_forms) {
  EXPECT_EQ(read({R"({"readOnly":true})"}).read_only,
            (std::vector<policy_pattern>{{"*", "/0.json"}}));
  EXPECT_TRUE(read({R"({"readOnly":false})"}).read_only.empty());
  EXPECT_EQ(read({R"({"confirm":"destructive"})"}).confirm_destructive, "/0.json");
  auto both = read({R"({"confirm":["destructive","a/b"]})"});
  EXPECT_EQ(both.confirm_destructive, "/0.json");
  EXPECT_EQ(both.confirm, (std::vector<policy_pattern>{{"a/b", "/0.json"}}));
}

TEST(policy_reader, of_several_files_the_stricter_one_wins) {
  auto rules = read({R"({"allow":["a","b"]})", R"({"allow":["b","c"],"readOnly":true})",
                     R"({"readOnly":false,"limits":{"callsPerRun":9}})"});
  EXPECT_FALSE(allows_server(rules, "a").allowed);
  EXPECT_TRUE(allows_server(rules, "b").allowed);
  EXPECT_FALSE(allows_server(rules, "c").allowed);
  EXPECT_EQ(rules.read_only.size(), 1U) << "no file takes back what another one says";
}

TEST(policy_reader, what_is_not_understood_closes) {
  for (const auto* text : {
           R"([])",
           R"({"readonly":true})",
           R"({"readOnly":"yes"})",
           R"({"readOnly":null})",
           R"({"readOnly":[true]})",
           R"({"readOnly":["x/"]})",
           R"({"confirm":true})",
           R"({"confirm":"Destructive"})",
           R"({"confirm":"github/delete"})",
           R"({"confirm":[7]})",
           R"({"confirms":["x"]})",
           R"({"limits":7})",
           R"({"limits":{"callsPerRun":-1}})",
           R"({"limits":{"callsPerRun":1.5}})",
           R"({"limits":{"callsPerRun":"3"}})",
           R"({"limits":{"callsPerRun":100001}})",
           R"({"limits":{"callPerRun":3}})",
           R"({"limits":{"callsPerHour":3}})",
           R"({"limits":{"perTool":["x"]}})",
           R"({"limits":{"perTool":{"x/":3}}})",
           R"({"limits":{"perTool":{"x":null}}})",
           R"({"limit":{"callsPerRun":3}})",
           R"({"callsPerRun":3})",
       }) {
    policy rules;
    auto findings = read_policy(json::parse(text), "/p.json", rules);
    ASSERT_EQ(findings.size(), 1U) << text;
    EXPECT_EQ(findings[0].how, weight::closes) << text;
    EXPECT_EQ(findings[0].file, "/p.json");
  }
}

TEST(policy_reader, misspelled_keys_come_with_a_hint) {
  policy rules;
  auto findings = read_policy(json::parse(R"({"readonly":true})"), "/p.json", rules);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].message.find("did you mean \"readOnly\"?"), std::string::npos)
      << findings[0].message;
}

TEST(policy_reader, patterns_for_no_server_are_told) {
  auto rules = read({R"({"allow":["githup"],"deny":["x/y"],"readOnly":["gitlap"],"confirm":["*/z"],
                         "limits":{"perTool":{"nobody":1}}})"});
  auto findings = check_patterns(rules, {"github"});
  std::string told;
  for (const auto& each : findings) {
    told += fmt::format("{} {}\n", static_cast<int>(each.how), each.message);
  }
  EXPECT_EQ(findings.size(), 4U) << told;
  EXPECT_NE(told.find("2 policy.allow: \"githup\" matches no configured server; did you mean "
                      "\"github\"?"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find("1 policy.readOnly"), std::string::npos) << told;
  EXPECT_NE(told.find("1 policy.limits.perTool"), std::string::npos) << told;
  EXPECT_EQ(told.find("policy.confirm"), std::string::npos) << "it speaks of every server";
}

TEST(policy_reader, a_pattern_may_name_a_server_as_code_does) {
  policy rules;
  rules.deny = {"my_server/x", "my-server/y"};
  EXPECT_TRUE(check_patterns(rules, {"my-server"}).empty());
}

TEST(policy_reader, rules_outside_of_a_policy_close) {
  for (const auto* key : {"readOnly", "confirm", "limits", "callsPerRun", "read-only"}) {
    auto catalogue = read_server_config({{"/p.json", fmt::format(R"({{"{}":true}})", key)}},
                                        [](std::string_view) { return std::nullopt; }, "/home", {});
    EXPECT_FALSE(catalogue.rules.closed.empty()) << key;
  }
}

TEST(policy_reader, rules_within_an_entry_drop_the_server) {
  for (const auto* key : {"readOnly", "confirm"}) {
    auto catalogue = read_server_config(
        {{"/p.json", fmt::format(R"({{"mcpServers":{{"x":{{"command":"c","{}":true}}}}}})", key)}},
        [](std::string_view) { return std::nullopt; }, "/home", {});
    EXPECT_TRUE(catalogue.servers.empty()) << key;
    EXPECT_TRUE(catalogue.has_errors()) << key;
  }
}

} // namespace
} // namespace bulkhead
