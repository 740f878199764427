#include "protocol/policy.hpp"

#include <chrono>
#include <initializer_list>

#include <gtest/gtest.h>

#include "protocol/tool_documents.hpp"

namespace bulkhead {
namespace {

TEST(glob_match, follows_stars_and_question_marks) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*", "anything"));
  EXPECT_TRUE(glob_match("git*", "github"));
  EXPECT_TRUE(glob_match("*hub", "github"));
  EXPECT_TRUE(glob_match("g*t*b", "github"));
  EXPECT_TRUE(glob_match("g?thub", "github"));
  EXPECT_TRUE(glob_match("a*a*a", "aaa"));
  EXPECT_TRUE(glob_match("*ab", "aab"));
  EXPECT_FALSE(glob_match("", "x"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("git", "github"));
  EXPECT_FALSE(glob_match("github", "git"));
  EXPECT_FALSE(glob_match("a*a*a", "aa"));
  EXPECT_FALSE(glob_match("GIT*", "github"));
  EXPECT_FALSE(glob_match("[g]ithub", "github"));
}

TEST(glob_match, does_not_blow_up_on_many_stars) {
  std::string glob;
  for (int i = 0; i < 40; ++i) {
    glob += "*a";
  }
  glob += "*b";
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_match(glob, std::string(20'000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(policy, empty_allows_all) {
  policy rules;
  EXPECT_TRUE(allows_server(rules, "github").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "github", "create_issue").allowed);
}

TEST(policy, deny_wins_over_allow_and_is_named) {
  policy rules{{"github"}, {"github/delete_*", "files"}};
  EXPECT_TRUE(allows_tool_name(rules, "github", "create_issue").allowed);
  auto verdict = allows_tool_name(rules, "github", "delete_repo");
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.rule, "deny rule \"github/delete_*\"");
  EXPECT_FALSE(allows_server(rules, "files").allowed);
  EXPECT_TRUE(allows_server(rules, "github").allowed) << "a denied tool leaves its server";
}

TEST(policy, allow_list_names_servers_or_tools) {
  policy rules{{"files/read_*", "mem*"}, {}};
  EXPECT_TRUE(allows_server(rules, "files").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "files", "read_file").allowed);
  EXPECT_FALSE(allows_tool_name(rules, "files", "write_file").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "memory", "anything").allowed);
  auto verdict = allows_server(rules, "github");
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.rule, "not in the allow list");
}

TEST(policy, denied_as_a_whole) {
  EXPECT_FALSE(allows_server({{}, {"github"}}, "github").allowed);
  EXPECT_FALSE(allows_server({{}, {"github/*"}}, "github").allowed);
  EXPECT_FALSE(allows_server({{}, {"*"}}, "github").allowed);
  EXPECT_FALSE(allows_tool_name({{}, {"*"}}, "github", "x").allowed);
  EXPECT_TRUE(allows_server({{}, {"*/delete"}}, "github").allowed);
  EXPECT_FALSE(allows_tool_name({{}, {"*/delete"}}, "github", "delete").allowed);
}

TEST(policy, tool_names_may_hold_slashes) {
  policy rules{{}, {"s/admin/*"}};
  EXPECT_FALSE(allows_tool_name(rules, "s", "admin/drop").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "s", "user/drop").allowed);
  EXPECT_TRUE(allows_server(rules, "s").allowed);
}

tool_document tool_with(const std::string& name, const std::string& annotations) {
  tool_document tool;
  tool.name = name;
  tool.annotations = annotations;
  return tool;
}

TEST(policy, what_a_tool_says_of_itself) {
  struct row {
    const char* annotations;
    bool read_only;
    bool destructive;
  };
  for (const auto& [annotations, read_only, destructive] : std::initializer_list<row>{
           {"", false, true},
           {"{}", false, true},
           {R"({"readOnlyHint":true})", true, false},
           {R"({"readOnlyHint":false})", false, true},
           {R"({"readOnlyHint":"true"})", false, true},
           {R"({"readOnlyHint":1})", false, true},
           {R"({"readonlyhint":true})", false, true},
           {R"({"destructiveHint":false})", false, false},
           {R"({"destructiveHint":0})", false, true},
           // What contradicts itself isn't believed.
           {R"({"readOnlyHint":true,"destructiveHint":true})", false, true},
           {R"({"readOnlyHint":true,"destructiveHint":false})", true, false},
           {R"([{"readOnlyHint":true}])", false, true},
           {R"("readOnlyHint")", false, true},
           {"{broken", false, true},
       }) {
    auto traits = traits_of(tool_with("t", annotations));
    EXPECT_EQ(traits.read_only, read_only) << annotations;
    EXPECT_EQ(traits.destructive, destructive) << annotations;
  }
}

TEST(policy, read_only_lets_only_tools_pass_that_say_so) {
  policy rules;
  rules.read_only = {{"github", "/p.json"}};
  auto reads = tool_with("get", R"({"readOnlyHint":true})");
  auto silent = tool_with("get", "");
  EXPECT_TRUE(allows_tool(rules, "github", reads).allowed);
  EXPECT_TRUE(allows_tool(rules, "other", silent).allowed);
  auto verdict = allows_tool(rules, "github", silent);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_NE(verdict.rule.find("readOnly rule \"github\" (/p.json)"), std::string::npos)
      << verdict.rule;
  rules.deny = {"github/get"};
  EXPECT_FALSE(allows_tool(rules, "github", reads).allowed) << "deny wins";
}

TEST(policy, confirmation_is_asked_for_by_name_or_by_annotation) {
  policy rules;
  rules.confirm = {{"github/delete_*", "/p.json"}};
  auto silent = tool_with("delete_repo", R"({"readOnlyHint":true})");
  auto verdict = allows_tool(rules, "github", silent);
  EXPECT_TRUE(verdict.allowed && verdict.confirm) << "whatever the tool says of itself";
  EXPECT_EQ(verdict.rule, "confirm rule \"github/delete_*\" (/p.json)");
  EXPECT_FALSE(allows_tool(rules, "github", tool_with("get", "")).confirm);
  rules.confirm_destructive = "/q.json";
  EXPECT_TRUE(allows_tool(rules, "github", tool_with("get", "")).confirm);
  EXPECT_FALSE(allows_tool(rules, "x", tool_with("get", R"({"readOnlyHint":true})")).confirm);
  EXPECT_FALSE(allows_tool(rules, "x", tool_with("add", R"({"destructiveHint":false})")).confirm);
}

TEST(policy, each_allow_list_has_to_name_a_tool) {
  policy rules;
  rules.allow = {{"a", "/1.json"}, {"b", "/1.json"}, {"b/read", "/2.json"}};
  EXPECT_EQ(allows_server(rules, "a").rule, "not in the allow list of /2.json");
  EXPECT_TRUE(allows_server(rules, "b").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "b", "read").allowed);
  EXPECT_FALSE(allows_tool_name(rules, "b", "write").allowed);
  rules.allow_files = {"/1.json", "/2.json", "/3.json"};
  EXPECT_EQ(allows_tool_name(rules, "b", "read").rule, "not in the allow list of /3.json");
}

TEST(policy, is_described_rule_by_rule) {
  EXPECT_TRUE(describe({}).empty());
  policy rules;
  rules.deny = {{"a/x", "/p.json"}};
  rules.allow_files = {"/q.json"};
  rules.read_only = {{"*", "/p.json"}};
  rules.confirm_destructive = "/p.json";
  rules.calls_per_run = {{20, "/p.json", {}}};
  rules.calls_per_tool = {{2, "/p.json", "a/y"}};
  EXPECT_EQ(describe(rules),
            (std::vector<std::string>{"deny a/x (/p.json)", "allow nothing (/q.json)",
                                      "readOnly * (/p.json)", "confirm destructive (/p.json)",
                                      "callsPerRun 20 (/p.json)", "perTool a/y: 2 (/p.json)"}));
}

TEST(run_rights, is_requested_servers_within_policy) {
  run_rights rights({{}, {"secret", "files/write_*"}}, {"memory", "files", "secret", "files"});
  EXPECT_EQ(rights.servers(), (std::vector<std::string>{"files", "memory"}));
  EXPECT_TRUE(rights.server("files").allowed);
  EXPECT_TRUE(rights.tool_name("files", "read_file").allowed);
  EXPECT_FALSE(rights.tool_name("files", "write_file").allowed);
  EXPECT_EQ(rights.server("secret").rule, "deny rule \"secret\"");
  auto unasked = rights.tool_name("github", "create_issue");
  EXPECT_FALSE(unasked.allowed);
  EXPECT_EQ(unasked.rule, "not among the servers of this run");
}

TEST(run_rights, default_has_none) {
  run_rights rights;
  EXPECT_TRUE(rights.servers().empty());
  EXPECT_FALSE(rights.server("files").allowed);
  EXPECT_FALSE(rights.tool_name("files", "read_file").allowed);
}

TEST(policy, a_pattern_names_tools_as_servers_or_as_code_does) {
  policy rules;
  rules.deny = {"my_web/get_*"};
  EXPECT_FALSE(allows_tool_name(rules, "my-web", "get-sum").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "my-web", "set-sum").allowed);
  policy listed;
  listed.allow = {"web/get_sum"};
  EXPECT_TRUE(allows_tool_name(listed, "web", "get-sum").allowed);
  EXPECT_FALSE(allows_tool_name(listed, "web", "get-product").allowed);
}

TEST(run_rights, narrowing_only_takes_away) {
  run_rights rights{policy{}, {"a", "b"}};
  policy then;
  then.deny = {"b", "a/x"};
  rights.narrow(then);
  EXPECT_EQ(rights.servers(), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(rights.server("b").allowed);
  EXPECT_EQ(rights.tool_name("a", "x").rule, "deny rule \"a/x\"");
  EXPECT_TRUE(rights.tool_name("a", "y").allowed);
  policy later;
  later.deny = {"a/y"};
  rights.narrow(later);
  EXPECT_FALSE(rights.tool_name("a", "y").allowed);
  EXPECT_FALSE(rights.tool_name("a", "x").allowed);
  EXPECT_TRUE(rights.tool_name("a", "z").allowed);
}

} // namespace
} // namespace bulkhead
