#include "protocol/masked_arguments.hpp"

#include <gtest/gtest.h>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

std::string masked(const std::string& argument) {
  return mask_arguments({argument}).front();
}

TEST(masked_arguments, secrets_by_their_name) {
  EXPECT_EQ(masked("--api-key=abc"), "--api-key=***");
  EXPECT_EQ(masked("GITHUB_TOKEN=abc"), "GITHUB_TOKEN=***");
  EXPECT_EQ(masked("--dsn=user=me;password=abc;x=1"), "--dsn=user=me;password=***;x=1");
  EXPECT_EQ(masked("Authorization: Bearer abc def"), "Authorization: ***");
  EXPECT_EQ(masked("Authorization:abc"), "Authorization:***");
  EXPECT_EQ(masked("https://x/y?api_key=abc&z=1"), "https://x/y?api_key=***&z=1");
  EXPECT_EQ(masked("postgres://me:abc@host/db"), "postgres://me:***@host/db");
  EXPECT_EQ(masked("${TOKEN:-abc}"), "${TOKEN:-***}");
  EXPECT_EQ(masked("a${TOKEN-abc}b${TOKEN-}c"), "a${TOKEN-***}b${TOKEN-}c");
  EXPECT_EQ(mask_arguments({"--token", "abc", "--root", "/x"}),
            (std::vector<std::string>{"--token", "***", "--root", "/x"}));
  EXPECT_EQ(mask_arguments({"--header", "X-Api-Key: abc"}),
            (std::vector<std::string>{"--header", "X-Api-Key: ***"}));
}

TEST(masked_arguments, secrets_by_their_form) {
  EXPECT_EQ(masked("ghp_0123456789abcdefghij"), "***");
  EXPECT_EQ(masked("sk-ant-0123456789abcdefghij"), "***");
}

TEST(masked_arguments, a_default_that_stands_for_itself_is_not_shown) {
  EXPECT_EQ(masked("${TOKEN-$${TOKEN}}/x"), "${TOKEN}/x");
  EXPECT_EQ(masked("${A-$A}${B-$${C}}${D-d}"), "${A}${B-$${C}}${D-d}");
}

TEST(masked_arguments, others_stay) {
  for (auto text : {"-y", "@scope/server", "--root=/data", "${HOME}/data", "--api-key=${KEY}", "",
                    "http://localhost:80/x", "a=b=c", "--verbose", "=", ":", "x:-y", "${", "$${A}",
                    "${-x}", "${A"}) {
    EXPECT_EQ(masked(text), text);
  }
  EXPECT_EQ(mask_arguments({"--token", "${TOKEN}", "--key", "--next"}),
            (std::vector<std::string>{"--token", "${TOKEN}", "--key", "--next"}));
}

TEST(masked_arguments, an_entry_shows_what_its_file_says) {
  auto result = read_server_config(
      {{"/c.json", R"({"mcpServers":{"x":{"command":"y","args":["${T}","--token=abc"]}}})"}},
      [](std::string_view) { return std::optional<std::string>{"hidden"}; }, "/home/u", {});
  ASSERT_EQ(result.servers.size(), 1U);
  EXPECT_EQ(result.servers[0].args[0], "hidden");
  EXPECT_EQ(result.servers[0].shown_args, (std::vector<std::string>{"${T}", "--token=***"}));
}

} // namespace
} // namespace bulkhead
