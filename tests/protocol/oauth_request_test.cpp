#include "protocol/oauth_request.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using scopes = std::vector<std::string>;

authorization_attempt attempt(bool sends_issuer = false) {
  return {"STATE", "VERIFIER", "http://127.0.0.1:7/callback", "https://as.example", sends_issuer};
}

TEST(pkce, is_as_in_rfc_7636_appendix_b) {
  EXPECT_EQ(code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

TEST(wanted_scopes, follow_the_order_of_mcp) {
  issuer_metadata issuer;
  EXPECT_EQ(wanted_scopes({"named"}, {"challenged"}, {"supported"}, {}, issuer), (scopes{"named"}));
  EXPECT_EQ(wanted_scopes({}, {"challenged"}, {"supported"}, {}, issuer), (scopes{"challenged"}));
  EXPECT_EQ(wanted_scopes({}, {}, {"a", "b"}, {}, issuer), (scopes{"a", "b"}));
  EXPECT_EQ(wanted_scopes({}, {}, {}, {}, issuer), scopes{});
  EXPECT_EQ(wanted_scopes({}, {"write"}, {"x"}, {"read"}, issuer), (scopes{"write", "read"}));
  issuer.scopes = {"a", "offline_access"};
  EXPECT_EQ(wanted_scopes({}, {"a"}, {}, {}, issuer), (scopes{"a", "offline_access"}));
  EXPECT_EQ(wanted_scopes({}, {}, {}, {}, issuer), scopes{});
}

TEST(authorization_url, holds_all_that_is_needed) {
  issuer_metadata issuer;
  issuer.authorization_endpoint = "https://as.example/authorize?tenant=1#x";
  auto url = authorization_url(attempt(), issuer, {"c d", "", client_auth::none}, {"a", "b"},
                               "https://a.example/mcp");
  ASSERT_TRUE(url.starts_with("https://as.example/authorize?tenant=1&"));
  auto fields = decode_form(url.substr(url.find('?') + 1));
  EXPECT_EQ(*fields,
            (std::map<std::string, std::string>{{"tenant", "1"},
                                                {"response_type", "code"},
                                                {"client_id", "c d"},
                                                {"redirect_uri", "http://127.0.0.1:7/callback"},
                                                {"state", "STATE"},
                                                {"code_challenge", code_challenge("VERIFIER")},
                                                {"code_challenge_method", "S256"},
                                                {"resource", "https://a.example/mcp"},
                                                {"scope", "a b"}}));
  issuer.authorization_endpoint = "https://as.example/authorize";
  url = authorization_url(attempt(), issuer, {"c", "", client_auth::none}, {}, "r");
  EXPECT_TRUE(url.starts_with("https://as.example/authorize?response_type"));
  EXPECT_EQ(url.find("scope="), std::string::npos);
}

TEST(authorization_answer, gives_the_code) {
  EXPECT_EQ(read_authorization_answer(attempt(), "code=C%2B&state=STATE"), "C+");
  EXPECT_EQ(read_authorization_answer(attempt(), "iss=https%3A%2F%2Fas.example&code=C&state=STATE"),
            "C");
}

TEST(authorization_answer, must_have_the_state) {
  for (auto query : {"code=C", "code=C&state=", "code=C&state=STAT", "code=C&state=STATEX",
                     "code=C&state=state", "code=C&state=STATE&state=STATE", ""}) {
    EXPECT_FALSE(has_state(attempt(), query)) << query;
    EXPECT_FALSE(read_authorization_answer(attempt(), query)) << query;
  }
  EXPECT_TRUE(has_state(attempt(), "code=C&state=STATE"));
}

TEST(authorization_answer, must_come_from_the_issuer) {
  // RFC 9207, and MCP's table: announced or not, present or not.
  auto code = [](bool announced, const char* query) {
    return read_authorization_answer(attempt(announced), query);
  };
  EXPECT_TRUE(code(true, "code=C&state=STATE&iss=https://as.example"));
  EXPECT_TRUE(code(false, "code=C&state=STATE&iss=https://as.example"));
  EXPECT_TRUE(code(false, "code=C&state=STATE"));
  EXPECT_EQ(code(true, "code=C&state=STATE").error().code, errc::denied);
  for (auto iss : {"https://evil.example", "https://as.example/", "https://AS.example",
                   "https://as.example:443", ""}) {
    for (auto announced : {true, false}) {
      auto query = std::string{"code=C&state=STATE&iss="} + iss;
      EXPECT_EQ(code(announced, query.c_str()).error().code, errc::denied) << iss;
    }
  }
}

TEST(authorization_answer, tells_a_refusal_of_the_issuer_alone) {
  auto refused = read_authorization_answer(
      attempt(), "error=access_denied&error_description=no%1B[1m+way&state=STATE");
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_NE(refused.error().message.find("access_denied"), std::string::npos);
  EXPECT_EQ(refused.error().message.find('\x1b'), std::string::npos);
  auto foreign = read_authorization_answer(
      attempt(), "error=phish&error_description=visit+evil&state=STATE&iss=https://evil.example");
  EXPECT_EQ(foreign.error().message.find("phish"), std::string::npos);
  EXPECT_EQ(foreign.error().message.find("visit"), std::string::npos);
}

TEST(authorization_answer, without_a_code_is_refused) {
  EXPECT_EQ(read_authorization_answer(attempt(), "state=STATE").error().code, errc::malformed);
  auto query = "state=STATE&code=" + std::string(9000, 'c');
  EXPECT_EQ(read_authorization_answer(attempt(), query).error().code, errc::malformed);
}

} // namespace
} // namespace bulkhead
