#include "protocol/oauth_credential.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::system_clock::time_point;

oauth_credential sample() {
  oauth_credential result;
  result.owner = "tenant";
  result.url = "https://a.example/mcp";
  result.server = "a";
  result.issuer = "https://as.example";
  result.resource = "https://a.example/mcp";
  result.client = {"client", "secret", client_auth::secret_post};
  result.token_endpoint = "https://as.example/token";
  result.revocation_endpoint = "https://as.example/revoke";
  result.access_token = "AT";
  result.refresh_token = "RT";
  result.scopes = {"a", "b"};
  result.expires = 1000;
  result.private_network = true;
  return result;
}

TEST(credential, survives_being_stored) {
  auto text = encode_credential(sample());
  EXPECT_EQ(decode_credential(text, "tenant", "https://a.example/mcp"), sample());
}

TEST(credential, is_of_one_owner_and_server) {
  auto text = encode_credential(sample());
  EXPECT_EQ(decode_credential(text, "", "https://a.example/mcp").error().code, errc::denied);
  EXPECT_EQ(decode_credential(text, "other", "https://a.example/mcp").error().code, errc::denied);
  EXPECT_EQ(decode_credential(text, "tenant", "https://b.example/mcp").error().code, errc::denied);
  EXPECT_FALSE(decode_credential("{}", "", ""));
  EXPECT_FALSE(decode_credential("{", "", ""));
}

TEST(credential, has_a_name_of_its_own_for_each_owner_and_server) {
  auto name = credential_name("a", "https://x.example/");
  EXPECT_EQ(name.size(), 64u);
  EXPECT_NE(name, credential_name("b", "https://x.example/"));
  EXPECT_NE(name, credential_name("a", "https://y.example/"));
  EXPECT_NE(credential_name("ab", "c"), credential_name("a", "bc"));
}

TEST(credential, is_bound_to_one_form_of_a_url) {
  EXPECT_EQ(credential_url("HTTPS://A.example:443/mcp#x"), "https://a.example/mcp");
  EXPECT_FALSE(credential_url("a.example"));
}

TEST(credential, is_fresh_until_shortly_before_it_expires) {
  auto credential = sample();
  EXPECT_TRUE(is_fresh(credential, time_point{980s}));
  EXPECT_FALSE(is_fresh(credential, time_point{990s}));
  EXPECT_FALSE(is_fresh(credential, time_point{2000s}));
  credential.expires = 0;
  EXPECT_TRUE(is_fresh(credential, time_point{2000s}));
  credential.access_token.clear();
  EXPECT_FALSE(is_fresh(credential, time_point{0s}));
}

TEST(credential, takes_over_a_grant) {
  auto credential = sample();
  take_grant(credential, {"AT2", "RT2", 60s, std::vector<std::string>{"c"}}, {"x"},
             time_point{100s});
  EXPECT_EQ(credential.access_token, "AT2");
  EXPECT_EQ(credential.refresh_token, "RT2");
  EXPECT_EQ(credential.expires, 160);
  EXPECT_EQ(credential.scopes, (std::vector<std::string>{"c"}));
  take_grant(credential, {"AT3", "", {}, {}}, {"x", "y"}, time_point{100s});
  EXPECT_EQ(credential.refresh_token, "RT2");
  EXPECT_EQ(credential.expires, 0);
  EXPECT_EQ(credential.scopes, (std::vector<std::string>{"x", "y"}));
}

} // namespace
} // namespace bulkhead
