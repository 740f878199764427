#include "protocol/bearer_check.hpp"

#include <gtest/gtest.h>

#include "protocol/http_rules.hpp"
#include "tests/support/test_keys.hpp"

namespace bulkhead {
namespace {

using bulkhead::testing::rsa;
using bulkhead::testing::rsa_jwk;
using bulkhead::testing::set_of;
using bulkhead::testing::signed_token;
using nlohmann::json;
using namespace std::chrono_literals;

const std::string issuer = "https://login.example.org/";
const std::string server = "https://mcp.example.org/mcp";
const std::string own_token = make_token(std::string(token_random_bytes, 'x'));
const std::string where =
    "resource_metadata=\"https://mcp.example.org/.well-known/oauth-protected-resource/mcp\"";

oauth_resource resource() {
  oauth_resource result{server, {"mcp"}, {}};
  result.issuers.push_back({issuer, {}, server, {"RS256"}, "team", {}, false});
  return result;
}

struct bearer : ::testing::Test {
  bearer() {
    serve_config config;
    config.tenants.resize(1);
    config.tenants[0].name = "ali";
    config.tenants[0].tokens = {{"laptop", token_hash(own_token), std::nullopt}};
    tokens->set(token_book{config});
    check.tokens = tokens;
    check.keys = keys;
    check.wall_clock = [] { return std::chrono::sys_seconds{1'800'000'000s}; };
    check.clock = [this] { return now; };
    check.fetch = [this](const std::string& from) { fetched.push_back(from); };
    check.note = [this](const std::string& reason) { notes.push_back(reason); };
  }

  void know_keys() {
    auto set = read_key_set(set_of({rsa_jwk(rsa(), "r1")}));
    keys->set_keys(issuer, std::make_shared<const key_set>(std::move(*set)));
  }

  static std::string access_token(const std::string& id = "r1", const std::string& scope = "mcp") {
    json claims{{"iss", issuer},
                {"aud", server},
                {"exp", 1'800'000'300},
                {"scope", scope},
                {"team", "bob"}};
    return signed_token(claims, rsa(), "RS256", {{"kid", id}});
  }

  /// The tenant; or status and challenge, or Retry-After.
  std::string answer(const std::string& token) const {
    auto result = check(token);
    if (result) {
      return *result;
    }
    std::string text = std::to_string(result.error().status);
    for (const auto& each : result.error().fields) {
      if (each.name != "Content-Type") {
        text += " " + each.name + ": " + each.value;
      }
    }
    return text;
  }

  std::shared_ptr<current_tokens> tokens = std::make_shared<current_tokens>();
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  key_ring::clock::time_point now{1000s};
  std::vector<std::string> fetched;
  std::vector<std::string> notes;
  bearer_check check;
};

TEST_F(bearer, own_tokens) {
  EXPECT_EQ(answer(own_token), "ali");
  EXPECT_EQ(answer(""), "401 WWW-Authenticate: Bearer");
  const std::string invalid = "401 WWW-Authenticate: Bearer error=\"invalid_token\"";
  EXPECT_EQ(answer("sesame"), invalid);
  EXPECT_EQ(answer(make_token(std::string(token_random_bytes, 'y'))), invalid);
  EXPECT_EQ(answer(access_token()), invalid) << "no authorization server is configured";
  EXPECT_TRUE(fetched.empty());
}

TEST_F(bearer, access_tokens) {
  keys->set_resource(resource());
  know_keys();
  EXPECT_EQ(answer(access_token()), "bob");
  EXPECT_EQ(answer(own_token), "ali") << "both kinds";
  EXPECT_EQ(answer(""), "401 WWW-Authenticate: Bearer scope=\"mcp\", " + where);
  EXPECT_EQ(answer("sesame"), "401 WWW-Authenticate: Bearer error=\"invalid_token\", " + where);
  EXPECT_EQ(answer(access_token("r1", "openid")),
            "403 WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"mcp\", " + where);
  EXPECT_EQ(notes, (std::vector<std::string>{"the token is no signed JWT",
                                             "the token hasn't the scope mcp"}));
}

TEST_F(bearer, an_unknown_key_leads_to_one_fetch) {
  keys->set_resource(resource());
  know_keys();
  EXPECT_EQ(answer(access_token("r9")), "503 Retry-After: 2");
  EXPECT_EQ(fetched, std::vector<std::string>{issuer});
  EXPECT_EQ(answer(access_token("r9")), "503 Retry-After: 2") << "it is under way";
  keys->end(issuer);
  const auto invalid = "401 WWW-Authenticate: Bearer error=\"invalid_token\", " + where;
  EXPECT_EQ(answer(access_token("r9")), invalid) << "just fetched, and not there";
  now += key_ring::fetch_interval - 1s;
  EXPECT_EQ(answer(access_token("r8")), invalid) << "whatever key it is";
  EXPECT_EQ(fetched.size(), 1U);
  now += 1s;
  EXPECT_EQ(answer(access_token("r9")), "503 Retry-After: 2");
  EXPECT_EQ(fetched.size(), 2U);
  EXPECT_EQ(answer(access_token()), "bob") << "who has a good one doesn't notice";
}

TEST_F(bearer, before_the_first_keys) {
  keys->set_resource(resource());
  EXPECT_TRUE(keys->begin(issuer, now));
  EXPECT_FALSE(keys->begin(issuer, now));
  EXPECT_EQ(answer(access_token()), "503 Retry-After: 2");
  EXPECT_TRUE(fetched.empty()) << "somebody is at it";
  now += key_ring::longest_fetch;
  EXPECT_EQ(answer(access_token()), "503 Retry-After: 2");
  EXPECT_EQ(fetched.size(), 1U) << "whoever was at it is gone";
}

TEST_F(bearer, tokens_that_are_bad_anyway_fetch_nothing) {
  keys->set_resource(resource());
  know_keys();
  auto bad = access_token("r1");
  bad.back() = bad.back() == 'A' ? 'Q' : 'A';
  for (const auto& token : {bad, std::string{"a.b.c"}, access_token() + "x"}) {
    EXPECT_TRUE(answer(token).starts_with("401 ")) << token;
  }
  json foreign{{"iss", "https://evil.example"}, {"aud", server}, {"exp", 1'800'000'300}};
  EXPECT_TRUE(answer(signed_token(foreign, rsa(), "RS256", {{"kid", "r9"}})).starts_with("401 "));
  EXPECT_TRUE(fetched.empty());
}

TEST_F(bearer, another_configuration) {
  keys->set_resource(resource());
  know_keys();
  auto more = resource();
  more.issuers.push_back(more.issuers[0]);
  more.issuers[1].issuer = "https://other.example";
  keys->set_resource(more);
  EXPECT_EQ(answer(access_token()), "bob") << "its keys are still good";
  more.issuers[0].jwks_uri = "https://login.example.org/elsewhere";
  keys->set_resource(more);
  EXPECT_EQ(answer(access_token()), "503 Retry-After: 2") << "keys of another place";
  keys->set_resource(std::nullopt);
  know_keys();
  EXPECT_TRUE(keys->get()->keys.empty()) << "nobody's keys";
  EXPECT_TRUE(answer(access_token()).starts_with("401 "));
}

TEST_F(bearer, by_the_rules_of_the_listener) {
  http_rules rules;
  rules.authenticate = check;
  incoming_request request;
  request.method = "POST";
  request.target = "/mcp";
  request.fields = {{"Host", "localhost"},
                    {"Content-Type", "application/json"},
                    {"Accept", "application/json, text/event-stream"}};
  auto none = check_head(request, rules);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, 401U);
  request.fields.push_back({"Authorization", "bearer  " + own_token});
  EXPECT_EQ(check_head(request, rules), "ali");
  request.fields.push_back({"Authorization", "Bearer " + own_token});
  EXPECT_FALSE(check_head(request, rules)) << "two of them";
}

} // namespace
} // namespace bulkhead
