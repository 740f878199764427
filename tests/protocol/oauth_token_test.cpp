#include "protocol/oauth_token.hpp"

#include <gtest/gtest.h>

#include "protocol/web_url.hpp"

namespace bulkhead {
namespace {

using namespace std::chrono_literals;

constexpr const char* sound =
    R"({"access_token": "AT", "token_type": "bearer", "expires_in": 60, "refresh_token": "RT",
        "scope": "a b"})";

TEST(token_answer, is_read) {
  auto grant = read_token_answer(200, sound);
  ASSERT_TRUE(grant);
  EXPECT_EQ(*grant, (token_grant{"AT", "RT", 60s, std::vector<std::string>{"a", "b"}}));
  auto least = read_token_answer(200, R"({"access_token": "AT", "token_type": "Bearer"})");
  ASSERT_TRUE(least);
  EXPECT_EQ(*least, (token_grant{"AT", "", {}, {}}));
}

TEST(token_answer, may_have_an_odd_lifetime) {
  auto lifetime = [](const std::string& value) {
    return read_token_answer(200, R"({"access_token": "AT", "token_type": "Bearer",
                                      "expires_in": )" +
                                      value + "}")
        ->lifetime;
  };
  EXPECT_EQ(lifetime("\"90\""), 90s);
  EXPECT_EQ(lifetime("1.5"), 1s);
  EXPECT_EQ(lifetime("0"), 0s);
  EXPECT_EQ(lifetime("null"), std::nullopt);
  EXPECT_EQ(lifetime("-5"), std::nullopt);
  EXPECT_EQ(lifetime("\"soon\""), std::nullopt);
  EXPECT_EQ(lifetime("1e300"), 10 * 365 * 24 * 3600s);
}

TEST(token_answer, that_is_unfit_is_refused) {
  for (auto body :
       {"", "{}", R"({"access_token": "AT"})", R"({"access_token": "AT", "token_type": "DPoP"})",
        R"({"access_token": "", "token_type": "Bearer"})",
        R"({"access_token": "A\r\nX: y", "token_type": "Bearer"})",
        R"({"access_token": "A B", "token_type": "Bearer"})",
        R"({"access_token": "ä", "token_type": "Bearer"})",
        R"({"access_token": 7, "token_type": "Bearer"})"}) {
    auto grant = read_token_answer(200, body);
    ASSERT_FALSE(grant) << body;
    EXPECT_FALSE(grant.error().final) << body;
    EXPECT_EQ(grant.error().reason.message.find("AT\""), std::string::npos);
  }
}

TEST(token_failure, is_final_when_the_grant_is_gone) {
  auto final = [](std::uint32_t status, const char* body) {
    return read_token_answer(status, body).error().final;
  };
  EXPECT_TRUE(final(400, R"({"error": "invalid_grant"})"));
  EXPECT_TRUE(final(401, R"({"error": "invalid_client"})"));
  EXPECT_FALSE(final(400, R"({"error": "invalid_request"})"));
  EXPECT_FALSE(final(503, R"({"error": "invalid_grant"})"));
  EXPECT_FALSE(final(500, "oops"));
  EXPECT_FALSE(final(302, ""));
  auto failure =
      read_token_answer(400, R"({"error": "invalid_grant", "error_description": "gone"})").error();
  EXPECT_EQ(failure.reason.code, errc::denied);
  EXPECT_NE(failure.reason.message.find("invalid_grant (gone)"), std::string::npos);
}

TEST(token_requests, have_what_the_rfcs_want) {
  oauth_client client{"c", "", client_auth::none};
  auto code = decode_form(
      code_request(client, "CODE", "http://127.0.0.1:1/callback", "VERIFIER", "https://a.example")
          .body);
  EXPECT_EQ(*code,
            (std::map<std::string, std::string>{{"grant_type", "authorization_code"},
                                                {"code", "CODE"},
                                                {"redirect_uri", "http://127.0.0.1:1/callback"},
                                                {"code_verifier", "VERIFIER"},
                                                {"resource", "https://a.example"},
                                                {"client_id", "c"}}));
  auto refresh = decode_form(refresh_request(client, "RT", "https://a.example").body);
  EXPECT_EQ(*refresh, (std::map<std::string, std::string>{{"grant_type", "refresh_token"},
                                                          {"refresh_token", "RT"},
                                                          {"resource", "https://a.example"},
                                                          {"client_id", "c"}}));
  auto revoke = decode_form(revocation_request(client, "RT", "refresh_token").body);
  EXPECT_EQ(*revoke,
            (std::map<std::string, std::string>{
                {"token", "RT"}, {"token_type_hint", "refresh_token"}, {"client_id", "c"}}));
}

} // namespace
} // namespace bulkhead
