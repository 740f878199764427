#include "protocol/oauth_metadata.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;
using texts = std::vector<std::string>;

web_url url(std::string_view text) {
  return read_web_url(text, "a URL").value();
}

json issuer_document() {
  return {{"issuer", "https://as.example/t"},
          {"authorization_endpoint", "https://as.example/t/authorize"},
          {"token_endpoint", "https://as.example/t/token"},
          {"code_challenge_methods_supported", {"plain", "S256"}}};
}

expected<issuer_metadata> read(const json& document, bool loopback = false) {
  return read_issuer_metadata(document.dump(), "https://as.example/t", loopback);
}

TEST(resource_metadata_urls, start_at_the_servers_path) {
  EXPECT_EQ(resource_metadata_urls(url("https://a.example/public/mcp"), ""),
            (texts{"https://a.example/.well-known/oauth-protected-resource/public/mcp",
                   "https://a.example/.well-known/oauth-protected-resource"}));
  EXPECT_EQ(resource_metadata_urls(url("https://a.example:8443/"), ""),
            (texts{"https://a.example:8443/.well-known/oauth-protected-resource"}));
  EXPECT_EQ(resource_metadata_urls(url("https://a.example/mcp"), "https://a.example/own.json"),
            (texts{"https://a.example/own.json"}));
}

TEST(issuer_metadata_urls, come_in_the_order_that_mcp_prescribes) {
  EXPECT_EQ(issuer_metadata_urls(url("https://as.example/tenant1/")),
            (texts{"https://as.example/.well-known/oauth-authorization-server/tenant1",
                   "https://as.example/.well-known/openid-configuration/tenant1",
                   "https://as.example/tenant1/.well-known/openid-configuration"}));
  EXPECT_EQ(issuer_metadata_urls(url("https://as.example")),
            (texts{"https://as.example/.well-known/oauth-authorization-server",
                   "https://as.example/.well-known/openid-configuration"}));
}

TEST(secure_url, is_https_or_loopback) {
  EXPECT_TRUE(read_secure_url("https://as.example/", "x", false));
  EXPECT_TRUE(read_secure_url("http://127.0.0.1:1/", "x", true));
  EXPECT_TRUE(read_secure_url("http://localhost:1/", "x", true));
  EXPECT_TRUE(read_secure_url("https://10.0.0.1/", "x", true));
  for (auto text : {"http://as.example/", "http://127.0.0.1:1/", "https://10.0.0.1/",
                    "https://169.254.169.254/", "https://[::1]/"}) {
    EXPECT_EQ(read_secure_url(text, "x", false).error().code, errc::denied) << text;
  }
  EXPECT_EQ(read_secure_url("http://192.168.0.2/", "x", true).error().code, errc::denied);
}

TEST(resource, covers_what_lies_at_or_below_it) {
  auto server = url("https://a.example/one/mcp");
  for (auto text : {"https://a.example/one/mcp", "https://A.example:443/one/mcp/",
                    "https://a.example/one", "https://a.example/", "https://a.example"}) {
    EXPECT_TRUE(resource_covers(url(text), server)) << text;
  }
  for (auto text :
       {"https://b.example/one/mcp", "http://a.example/one/mcp", "https://a.example:8443/one/mcp",
        "https://a.example/on", "https://a.example/one/mcp/x", "https://a.example/two",
        "https://a.example/one/mcp?tenant=2"}) {
    EXPECT_FALSE(resource_covers(url(text), server)) << text;
  }
}

TEST(resource_metadata, is_read) {
  json document = {{"resource", "https://a.example/mcp"},
                   {"authorization_servers", {"https://as.example", 7, "https://as2.example"}},
                   {"scopes_supported", {"a", "b"}}};
  auto result = read_resource_metadata(document.dump(), url("https://a.example/mcp"));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, (resource_metadata{"https://a.example/mcp",
                                        {"https://as.example", "https://as2.example"},
                                        {"a", "b"}}));
}

TEST(resource_metadata, of_another_resource_is_refused) {
  json document = {{"resource", "https://evil.example/mcp"},
                   {"authorization_servers", {"https://as.example"}}};
  auto result = read_resource_metadata(document.dump(), url("https://a.example/mcp"));
  EXPECT_EQ(result.error().code, errc::denied);
  EXPECT_NE(result.error().message.find("evil.example"), std::string::npos);
}

TEST(resource_metadata, that_is_incomplete_is_refused) {
  for (auto text :
       {"", "[]", "\"x\"", "{}", R"({"resource": 7})", R"({"resource": "https://a.example/mcp"})",
        R"({"resource": "https://a.example/mcp", "authorization_servers": []})",
        R"({"resource": "https://a.example/mcp", "resource": "x"})"}) {
    EXPECT_FALSE(read_resource_metadata(text, url("https://a.example/mcp"))) << text;
  }
  auto large = "{\"x\": \"" + std::string(largest_oauth_document, 'x') + "\"}";
  EXPECT_EQ(read_resource_metadata(large, url("https://a.example/mcp")).error().code,
            errc::too_large);
}

TEST(issuer_metadata, is_read) {
  auto document = issuer_document();
  auto plain = read(document);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->token_endpoint, "https://as.example/t/token");
  EXPECT_FALSE(plain->client_id_documents);
  EXPECT_FALSE(plain->sends_issuer);
  EXPECT_TRUE(plain->registration_endpoint.empty());
  document["registration_endpoint"] = "https://as.example/t/register";
  document["revocation_endpoint"] = "https://as.example/t/revoke";
  document["scopes_supported"] = {"a", "offline_access"};
  document["token_endpoint_auth_methods_supported"] = {"none"};
  document["client_id_metadata_document_supported"] = true;
  document["authorization_response_iss_parameter_supported"] = true;
  auto full = read(document);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->registration_endpoint, "https://as.example/t/register");
  EXPECT_EQ(full->revocation_endpoint, "https://as.example/t/revoke");
  EXPECT_EQ(full->scopes, (texts{"a", "offline_access"}));
  EXPECT_EQ(full->token_auth_methods, (texts{"none"}));
  EXPECT_TRUE(full->client_id_documents);
  EXPECT_TRUE(full->sends_issuer);
}

TEST(issuer_metadata, of_another_issuer_is_refused) {
  for (auto issuer :
       {"https://as.example/t/", "https://AS.example/t", "https://evil.example", ""}) {
    auto document = issuer_document();
    document["issuer"] = issuer;
    EXPECT_EQ(read(document).error().code, errc::denied) << issuer;
  }
}

TEST(issuer_metadata, must_have_pkce_with_s256) {
  auto document = issuer_document();
  document["code_challenge_methods_supported"] = {"plain"};
  EXPECT_EQ(read(document).error().code, errc::denied);
  document.erase("code_challenge_methods_supported");
  EXPECT_EQ(read(document).error().code, errc::denied);
}

TEST(issuer_metadata, must_have_secure_endpoints) {
  for (auto key : {"authorization_endpoint", "token_endpoint", "registration_endpoint"}) {
    for (auto text : {"http://as.example/x", "https://10.0.0.1/x", "javascript:alert(1)",
                      "file:///etc/passwd"}) {
      auto document = issuer_document();
      document[key] = text;
      EXPECT_FALSE(read(document)) << key << " " << text;
    }
  }
  for (auto key : {"authorization_endpoint", "token_endpoint"}) {
    auto document = issuer_document();
    document.erase(key);
    EXPECT_EQ(read(document).error().code, errc::malformed) << key;
  }
  auto document = issuer_document();
  document["token_endpoint"] = "http://127.0.0.1:9/token";
  EXPECT_TRUE(read(document, true));
  EXPECT_EQ(read(document, false).error().code, errc::denied);
}

} // namespace
} // namespace bulkhead
