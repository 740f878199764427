#include "protocol/tenant_config.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using texts = std::vector<std::string>;

tl::expected<serve_config, std::vector<error>> read(std::string_view text) {
  return read_serve_config(text, "/etc/bulkhead/bulkhead.toml", {});
}

/// The messages that `text` leads to, a line each.
std::string refusals(std::string_view text) {
  auto result = read(text);
  if (result) {
    return "accepted";
  }
  std::string all;
  for (const auto& each : result.error()) {
    all += (all.empty() ? "" : "\n") + each.message;
  }
  return all;
}

const std::string oauth_text = R"(
[tenants.ali]
[oauth]
resource = "https://mcp.example.org/mcp"
scopes = ["mcp"]
[[oauth.issuers]]
issuer = "https://login.example.org/"
tenant = "ali"
[[oauth.issuers]]
issuer = "http://127.0.0.1:9000"
jwks_uri = "http://127.0.0.1:9000/keys"
audience = "bulkhead"
algorithms = ["ES256"]
tenant_claim = "team"
private_network = true
)";

TEST(oauth_config, authorization_servers) {
  auto config = read(oauth_text);
  ASSERT_TRUE(config) << refusals(oauth_text);
  ASSERT_TRUE(config->oauth);
  EXPECT_EQ(config->oauth->resource, "https://mcp.example.org/mcp");
  EXPECT_EQ(config->oauth->scopes, texts{"mcp"});
  ASSERT_EQ(config->oauth->issuers.size(), 2U);
  EXPECT_EQ(config->oauth->issuers[0],
            (oauth_issuer{"https://login.example.org/", "", "https://mcp.example.org/mcp",
                          known_algorithms(), "", "ali", false}));
  EXPECT_EQ(config->oauth->issuers[1], (oauth_issuer{"http://127.0.0.1:9000",
                                                     "http://127.0.0.1:9000/keys",
                                                     "bulkhead",
                                                     {"ES256"},
                                                     "team",
                                                     "",
                                                     true}));
  auto other = *config;
  other.oauth->scopes.clear();
  EXPECT_EQ(compare(*config, other).at_once, texts{"oauth"});
}

TEST(oauth_config, authorization_servers_that_can_not_be_meant) {
  auto with = [](std::string_view from, std::string_view to) {
    auto text = oauth_text;
    auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const auto& text :
       {with("resource = \"https://mcp.example.org/mcp\"", ""), with("https://mcp", "http://mcp"),
        with("\"mcp\"]", "\"a b\"]"), with("https://login.example.org/", "login"),
        with("https://login.example.org/", "https://login.example.org/?x"),
        with("issuer = \"https://login.example.org/\"", ""), with("tenant = \"ali\"", ""),
        with("tenant = \"ali\"", "tenant = \"ali\"\ntenant_claim = \"x\""),
        with("tenant = \"ali\"", "tenant = \"bob\""), with("[\"ES256\"]", "[\"HS256\"]"),
        with("[\"ES256\"]", "[\"none\"]"), with("[\"ES256\"]", "[]"), with("true", "1"),
        with("tenant_claim", "tenant_clam"),
        with("http://127.0.0.1:9000", "https://login.example.org/"),
        std::string{"[oauth]\nresource = \"https://a.example/mcp\""}}) {
    auto why = refusals(text);
    EXPECT_NE(why, "accepted") << text;
    EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), why.find("clam") != why.npos ? 1 : 0)
        << why;
  }
}

} // namespace
} // namespace bulkhead
