#include "protocol/oauth_challenge.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using scopes = std::vector<std::string>;

TEST(bearer_challenge, is_read) {
  auto challenge = read_bearer_challenge(
      "Bearer error=\"insufficient_scope\", scope=\"files:read  files:write\", "
      "resource_metadata=\"https://a.example/m\", error_description=\"a \\\"b\\\", c\"");
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->error, "insufficient_scope");
  EXPECT_EQ(challenge->scopes, (scopes{"files:read", "files:write"}));
  EXPECT_EQ(challenge->resource_metadata, "https://a.example/m");
}

TEST(bearer_challenge, needs_no_parameters) {
  EXPECT_EQ(read_bearer_challenge("Bearer"), bearer_challenge{});
  EXPECT_EQ(read_bearer_challenge("  bearer  "), bearer_challenge{});
  EXPECT_EQ(read_bearer_challenge("BEARER Scope = a"), (bearer_challenge{{}, {"a"}, {}}));
}

TEST(bearer_challenge, is_found_among_others) {
  bearer_challenge wanted{"https://a.example/m", {"x"}, {}};
  for (auto header :
       {"Basic realm=\"Bearer scope=no\", Bearer scope=\"x\", "
        "resource_metadata=\"https://a.example/m\"",
        "Negotiate YWJj==, Bearer scope=x, resource_metadata=\"https://a.example/m\"",
        "Negotiate, Bearer scope=x, resource_metadata=\"https://a.example/m\", Basic realm=y",
        "DPoP algs=\"ES256\", Bearer scope=x , resource_metadata=\"https://a.example/m\""}) {
    auto challenge = read_bearer_challenge(header);
    ASSERT_TRUE(challenge) << header;
    EXPECT_EQ(*challenge, wanted) << header;
  }
}

TEST(bearer_challenge, is_none_where_there_is_none) {
  for (auto header : {"", ",", "Basic realm=\"x\"", "Bearer scope=\"open", "Bearer scope=\"open\\",
                      "Basic realm=\"open, Bearer scope=x", "\"Bearer\"", "Bearer scope=\""}) {
    EXPECT_FALSE(read_bearer_challenge(header)) << header;
  }
}

TEST(bearer_challenge, holds_nothing_that_drives_a_terminal) {
  auto challenge = read_bearer_challenge("Bearer error=\"a\x1b[31m\"");
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->error, "a?[31m");
}

TEST(scopes, are_each_taken_once) {
  EXPECT_EQ(read_scopes(" a b  a c\"d e\\f \x01 "), (scopes{"a", "b"}));
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += "s" + std::to_string(i) + " ";
  }
  EXPECT_EQ(read_scopes(many).size(), 64u);
  EXPECT_TRUE(read_scopes(std::string(513, 'x')).empty());
}

TEST(scopes, are_joined) {
  EXPECT_EQ(joined_scopes({"a", "b"}, {"b", "c"}), (scopes{"a", "b", "c"}));
  EXPECT_EQ(scope_text({"a", "b"}), "a b");
  EXPECT_EQ(scope_text({}), "");
}

} // namespace
} // namespace bulkhead
