#include "protocol/policy.hpp"

#include <chrono>

#include <gtest/gtest.h>

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
  EXPECT_TRUE(allows_tool(rules, "github", "create_issue").allowed);
}

TEST(policy, deny_wins_over_allow_and_is_named) {
  policy rules{{"github"}, {"github/delete_*", "files"}};
  EXPECT_TRUE(allows_tool(rules, "github", "create_issue").allowed);
  auto verdict = allows_tool(rules, "github", "delete_repo");
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.rule, "deny rule \"github/delete_*\"");
  EXPECT_FALSE(allows_server(rules, "files").allowed);
  EXPECT_TRUE(allows_server(rules, "github").allowed) << "a denied tool leaves its server";
}

TEST(policy, allow_list_names_servers_or_tools) {
  policy rules{{"files/read_*", "mem*"}, {}};
  EXPECT_TRUE(allows_server(rules, "files").allowed);
  EXPECT_TRUE(allows_tool(rules, "files", "read_file").allowed);
  EXPECT_FALSE(allows_tool(rules, "files", "write_file").allowed);
  EXPECT_TRUE(allows_tool(rules, "memory", "anything").allowed);
  auto verdict = allows_server(rules, "github");
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.rule, "not in the allow list");
}

TEST(policy, denied_as_a_whole) {
  EXPECT_FALSE(allows_server({{}, {"github"}}, "github").allowed);
  EXPECT_FALSE(allows_server({{}, {"github/*"}}, "github").allowed);
  EXPECT_FALSE(allows_server({{}, {"*"}}, "github").allowed);
  EXPECT_FALSE(allows_tool({{}, {"*"}}, "github", "x").allowed);
  EXPECT_TRUE(allows_server({{}, {"*/delete"}}, "github").allowed);
  EXPECT_FALSE(allows_tool({{}, {"*/delete"}}, "github", "delete").allowed);
}

TEST(policy, tool_names_may_hold_slashes) {
  policy rules{{}, {"s/admin/*"}};
  EXPECT_FALSE(allows_tool(rules, "s", "admin/drop").allowed);
  EXPECT_TRUE(allows_tool(rules, "s", "user/drop").allowed);
  EXPECT_TRUE(allows_server(rules, "s").allowed);
}

TEST(run_rights, is_requested_servers_within_policy) {
  run_rights rights({{}, {"secret", "files/write_*"}}, {"memory", "files", "secret", "files"});
  EXPECT_EQ(rights.servers(), (std::vector<std::string>{"files", "memory"}));
  EXPECT_TRUE(rights.server("files").allowed);
  EXPECT_TRUE(rights.tool("files", "read_file").allowed);
  EXPECT_FALSE(rights.tool("files", "write_file").allowed);
  EXPECT_EQ(rights.server("secret").rule, "deny rule \"secret\"");
  auto unasked = rights.tool("github", "create_issue");
  EXPECT_FALSE(unasked.allowed);
  EXPECT_EQ(unasked.rule, "not among the servers of this run");
}

TEST(run_rights, default_has_none) {
  run_rights rights;
  EXPECT_TRUE(rights.servers().empty());
  EXPECT_FALSE(rights.server("files").allowed);
  EXPECT_FALSE(rights.tool("files", "read_file").allowed);
}

TEST(run_rights, narrowing_only_takes_away) {
  run_rights rights{policy{}, {"a", "b"}};
  policy then;
  then.deny = {"b", "a/x"};
  rights.narrow(then);
  EXPECT_EQ(rights.servers(), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(rights.server("b").allowed);
  EXPECT_EQ(rights.tool("a", "x").rule, "deny rule \"a/x\"");
  EXPECT_TRUE(rights.tool("a", "y").allowed);
  policy later;
  later.deny = {"a/y"};
  rights.narrow(later);
  EXPECT_FALSE(rights.tool("a", "y").allowed);
  EXPECT_FALSE(rights.tool("a", "x").allowed);
  EXPECT_TRUE(rights.tool("a", "z").allowed);
}

} // namespace
} // namespace bulkhead
