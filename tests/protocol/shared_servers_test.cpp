#include "protocol/shared_servers.hpp"

#include <gtest/gtest.h>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

using texts = std::vector<std::string>;

/// With comments and a trailing comma, as people write it.
constexpr std::string_view configuration = R"({
  // for all
  "mcpServers": {
    "github": {"command": "gh"},
    "docs-a": {"command": "a"},
    "docs-b": {"command": "b"},
    "git_hub": {"command": "other"},
  },
  "servers": {"docs-c": {"command": "c"}},
  "policy": {"deny": ["github/delete_*", "docs-a/write"]}
})";

server_catalogue catalogue_of(const texts& globs) {
  auto selected = select_servers(configuration, globs);
  EXPECT_TRUE(selected);
  return read_server_config({{"/s.json", selected ? selected->text : ""}}, {}, "/home/u", {});
}

TEST(shared_servers, only_those_that_match_are_there) {
  auto catalogue = catalogue_of({"github", "docs-?"});
  texts names;
  for (const auto& entry : catalogue.servers) {
    names.push_back(entry.name);
  }
  EXPECT_EQ(names, (texts{"docs-a", "docs-b", "docs-c", "github"}));
  EXPECT_EQ(catalogue.find("docs-b")->command, "b");
  EXPECT_EQ(catalogue.find("git_hub"), nullptr);
}

TEST(shared_servers, what_one_may_not_know_gives_no_alias_a_suffix) {
  EXPECT_EQ(catalogue_of({"docs-*", "git_hub"}).find("git_hub")->alias, "git_hub");
}

TEST(shared_servers, the_policy_stays) {
  auto rules = catalogue_of({"github"}).rules;
  EXPECT_FALSE(allows_tool_name(rules, "github", "delete_repository").allowed);
  EXPECT_TRUE(allows_tool_name(rules, "github", "search").allowed);
}

TEST(shared_servers, globs_for_nothing_are_told) {
  auto selected = select_servers(configuration, {"githb", "docs-*", "x*"});
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->unmatched, (texts{"githb", "x*"}));
  EXPECT_TRUE(select_servers(configuration, {"*"})->unmatched.empty());
}

TEST(shared_servers, what_is_no_configuration_is_refused_or_left_as_it_is) {
  auto broken = select_servers("{\"mcpServers\": {", {"*"});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, errc::malformed);
  auto odd = select_servers(R"({"mcpServers": ["github"]})", {"github"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->text, R"({"mcpServers":["github"]})");
  EXPECT_EQ(odd->unmatched, texts{"github"});
}

} // namespace
} // namespace bulkhead
