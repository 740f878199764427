#include <set>

#include <gtest/gtest.h>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

TEST(python_identifier, makes_identifiers) {
  EXPECT_EQ(python_identifier("github"), "github");
  EXPECT_EQ(python_identifier("my-server.v2"), "my_server_v2");
  EXPECT_EQ(python_identifier("7zip"), "_7zip");
  EXPECT_EQ(python_identifier(""), "_");
  EXPECT_EQ(python_identifier("class"), "class_");
  EXPECT_EQ(python_identifier("None"), "None_");
  EXPECT_EQ(python_identifier("match"), "match");
  EXPECT_EQ(python_identifier("über"), "__ber");
  EXPECT_EQ(python_identifier("__class__"), "__class___");
  EXPECT_EQ(python_identifier("a b\nc\"d"), "a_b_c_d");
}

TEST(python_aliases, leaves_distinct_names_alone) {
  EXPECT_EQ(python_aliases({"files", "git-hub"}), (std::vector<std::string>{"files", "git_hub"}));
  EXPECT_TRUE(python_aliases({}).empty());
}

TEST(python_aliases, a_collision_suffixes_each_by_its_own_name) {
  auto pair = python_aliases({"a-b", "a_b"});
  EXPECT_NE(pair[0], pair[1]);
  EXPECT_TRUE(pair[0].starts_with("a_b_"));
  EXPECT_TRUE(pair[1].starts_with("a_b_"));
  auto turned = python_aliases({"x", "a_b", "a-b"});
  EXPECT_EQ(turned[1], pair[1]);
  EXPECT_EQ(turned[2], pair[0]);
  auto more = python_aliases({"a-b", "a.b", "a_b"});
  EXPECT_EQ(more[0], pair[0]) << "a third name doesn't change the first two";
  EXPECT_EQ(more[2], pair[1]);
}

TEST(python_aliases, a_suffix_is_the_same_on_every_machine) {
  // FNV-1a 64 of "a-b" and "a_b", first six digits, computed independently.
  EXPECT_EQ(python_aliases({"a-b", "a_b"}), (std::vector<std::string>{"a_b_e61ab3", "a_b_e6c4a3"}));
}

TEST(python_aliases, a_name_that_looks_like_a_suffixed_alias_stays_apart) {
  auto pair = python_aliases({"a-b", "a_b"});
  auto aliases = python_aliases({"a-b", "a_b", pair[0], pair[1]});
  EXPECT_EQ(std::set<std::string>(aliases.begin(), aliases.end()).size(), 4U);
}

TEST(python_aliases, equal_names_are_numbered) {
  auto aliases = python_aliases({"x", "x", "x", "x-y"});
  EXPECT_EQ(std::set<std::string>(aliases.begin(), aliases.end()).size(), 4U);
  EXPECT_EQ(aliases[1], aliases[0] + "_2");
  EXPECT_EQ(aliases[2], aliases[0] + "_3");
}

TEST(python_aliases, thousands_of_collisions_are_quick_and_unique) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) {
    // Same identifier for all of them: thirteen bits choose between two separators each.
    std::string name = "t";
    for (int bit = 0; bit < 13; ++bit) {
      name += (i >> bit) & 1 ? '-' : '.';
    }
    names.push_back(name);
  }
  auto aliases = python_aliases(names);
  EXPECT_EQ(std::set<std::string>(aliases.begin(), aliases.end()).size(), names.size());
}

} // namespace
} // namespace bulkhead
