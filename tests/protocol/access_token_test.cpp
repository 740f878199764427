#include "protocol/access_token.hpp"

#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include "tests/support/test_keys.hpp"

namespace bulkhead {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using kind = access_refusal::kind;

constexpr std::chrono::sys_seconds now{1'800'000'000s};
const std::string issuer = "https://login.example.org/";
const std::string audience = "https://mcp.example.org/mcp";

json good_claims() {
  return {{"iss", issuer},   {"aud", audience},       {"exp", 1'800'000'300},
          {"sub", "user-1"}, {"scope", "openid mcp"}, {"team", "ali"}};
}

std::string token(const json& claims, const pkey& key = rsa(),
                  const std::string& algorithm = "RS256", const json& more = {{"kid", "r1"}}) {
  return signed_token(claims, key, algorithm, more);
}

oauth_resource resource() {
  oauth_resource result{audience, {"mcp"}, {}};
  result.issuers.push_back({issuer, {}, audience, {"RS256", "ES256"}, "team", {}, false});
  return result;
}

issuer_keys keys_of(const std::string& set) {
  auto read = read_key_set(set);
  EXPECT_TRUE(read) << read.error().message;
  return {{issuer, std::make_shared<const key_set>(std::move(*read))}};
}

const issuer_keys& keys() {
  static const auto all =
      keys_of(set_of({rsa_jwk(rsa(), "r1"), rsa_jwk(other_rsa(), "r2"), ec_jwk(ec(), "e1")}));
  return all;
}

/// "ok", or why the token isn't believed.
std::string outcome(const std::string& text, const oauth_resource& config = resource(),
                    const issuer_keys& known = keys(), std::chrono::sys_seconds at = now) {
  auto result = check_access_token(text, config, known, at);
  if (result) {
    return "ok";
  }
  switch (result.error().what) {
  case kind::unknown_key:
    return "unknown key: " + result.error().reason;
  case kind::scope:
    return "scope: " + result.error().reason;
  default:
    return result.error().reason;
  }
}

std::string with_claim(const char* name, const json& value) {
  auto claims = good_claims();
  claims[name] = value;
  return outcome(token(claims));
}

std::string without_claim(const char* name) {
  auto claims = good_claims();
  claims.erase(name);
  return outcome(token(claims));
}

TEST(access_token, a_good_one) {
  auto result = check_access_token(token(good_claims()), resource(), keys(), now);
  ASSERT_TRUE(result) << result.error().reason;
  EXPECT_EQ(*result, (access_grant{"ali", "user-1", issuer}));
}

TEST(access_token, each_algorithm) {
  auto config = resource();
  config.issuers[0].algorithms = known_algorithms();
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256"), config), "ok");
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "PS256"), config), "ok");
  EXPECT_EQ(outcome(token(good_claims(), ec(), "ES256", {{"kid", "e1"}}), config), "ok");
}

TEST(access_token, algorithms_that_are_not_configured) {
  const std::string refused = "the token is signed with an algorithm that isn't configured";
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "PS256")), refused);
  for (const auto* algorithm : {"none", "None", "", "HS256", "RS384", "rs256"}) {
    EXPECT_EQ(outcome(token(good_claims(), rsa(), algorithm)), refused) << algorithm;
  }
  auto bare = unsigned_part(json{{"alg", "none"}}.dump(), good_claims().dump());
  EXPECT_EQ(outcome(bare + ".AA"), refused);
  EXPECT_EQ(outcome(bare + "."), "the token is no signed JWT");
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256", {{"alg", 5}})), refused);
}

/// The public key is known to all: as the secret of a symmetric algorithm it would let anybody in.
TEST(access_token, the_public_key_as_a_secret) {
  auto text = unsigned_part(json{{"alg", "HS256"}, {"kid", "r1"}}.dump(), good_claims().dump());
  auto secret = decode_base64url(number(rsa(), OSSL_PKEY_PARAM_RSA_N)).value();
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  auto forged = text + "." + encode_base64url({reinterpret_cast<char*>(mac), size});
  EXPECT_EQ(outcome(forged), "the token is signed with an algorithm that isn't configured");
  // Not even where a configuration names it: no key that is ever read verifies it.
  auto config = resource();
  config.issuers[0].algorithms.push_back("HS256");
  EXPECT_EQ(outcome(forged, config), "the key that the token names is for another algorithm");
  auto symmetric = json{{"kty", "oct"}, {"kid", "s"}, {"k", encode_base64url(secret)}};
  EXPECT_FALSE(read_key_set(set_of({symmetric})));
}

TEST(access_token, a_key_of_another_kind) {
  const std::string refused = "the key that the token names is for another algorithm";
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256", {{"kid", "e1"}})), refused);
  EXPECT_EQ(outcome(token(good_claims(), ec(), "ES256", {{"kid", "r1"}})), refused);
}

TEST(access_token, signatures) {
  const std::string refused = "the signature isn't valid";
  EXPECT_EQ(outcome(token(good_claims(), other_rsa())), refused) << "signed by another";
  EXPECT_EQ(outcome(token(good_claims(), ec(), "ES256", {{"alg", "RS256"}, {"kid", "r1"}})),
            refused);
  auto good = token(good_claims());
  auto claims = good_claims();
  claims["team"] = "bob";
  auto dot = good.rfind('.');
  auto swapped =
      unsigned_part(json{{"alg", "RS256"}, {"kid", "r1"}}.dump(), claims.dump()) + good.substr(dot);
  EXPECT_EQ(outcome(swapped), refused) << "another tenant under the same signature";
  auto changed = good;
  changed[dot + 10] = changed[dot + 10] == 'A' ? 'B' : 'A';
  EXPECT_EQ(outcome(changed), refused);
}

TEST(access_token, which_key) {
  auto unnamed = token(good_claims(), rsa(), "RS256", json::object());
  EXPECT_EQ(outcome(unnamed), "the token doesn't say which of the issuer's keys it is signed with");
  EXPECT_EQ(outcome(unnamed, resource(), keys_of(set_of({rsa_jwk(rsa(), "")}))), "ok");
  auto unknown = check_access_token(token(good_claims(), rsa(), "RS256", {{"kid", "r9"}}),
                                    resource(), keys(), now);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, kind::unknown_key);
  EXPECT_EQ(unknown.error().issuer, issuer);
  EXPECT_TRUE(outcome(token(good_claims()), resource(), {}).starts_with("unknown key: "));
  auto own = json{{"kid", "r1"},
                  {"jwk", rsa_jwk(other_rsa(), "r1")},
                  {"jku", "https://evil.example/keys"},
                  {"x5u", "https://evil.example/"}};
  EXPECT_EQ(outcome(token(good_claims(), other_rsa(), "RS256", own)), "the signature isn't valid")
      << "keys that a token brings along don't count";
}

TEST(access_token, several_keys_of_one_name) {
  auto known =
      keys_of(set_of({ec_jwk(ec(), "r1"), rsa_jwk(other_rsa(), "r1"), rsa_jwk(rsa(), "r1")}));
  EXPECT_EQ(outcome(token(good_claims(), rsa()), resource(), known), "ok");
  EXPECT_EQ(outcome(token(good_claims(), other_rsa()), resource(), known), "ok");
  EXPECT_EQ(outcome(token(good_claims(), ec(), "ES256", {{"kid", "r1"}}), resource(), known), "ok");
  auto forged = token(good_claims(), rsa());
  forged[forged.rfind('.') + 5] = forged[forged.rfind('.') + 5] == 'A' ? 'B' : 'A';
  EXPECT_EQ(outcome(forged, resource(), known), "the signature isn't valid");
}

TEST(access_token, times) {
  auto at = [](std::chrono::seconds later) {
    return outcome(token(good_claims()), resource(), keys(), now + later);
  };
  EXPECT_EQ(at(300s + token_leeway - 1s), "ok");
  EXPECT_EQ(at(300s + token_leeway), "the token has expired");
  EXPECT_EQ(without_claim("exp"), "the token doesn't say when it expires");
  for (const json& odd : {json("1800000300"), json(nullptr), json(-1), json(1e300)}) {
    EXPECT_EQ(with_claim("exp", odd), "the token doesn't say when it expires") << odd;
  }
  EXPECT_EQ(with_claim("exp", 1'800'000'300.5), "ok");
  for (const auto* name : {"nbf", "iat"}) {
    EXPECT_EQ(with_claim(name, 1'800'000'030), "ok") << name;
    EXPECT_EQ(with_claim(name, 1'800'000'031), "the token isn't valid yet") << name;
    EXPECT_EQ(with_claim(name, "now"), "the token isn't valid yet") << name;
  }
}

TEST(access_token, meant_for_this_server) {
  EXPECT_EQ(with_claim("aud", json{"https://x.example", audience}), "ok");
  const std::string refused = "the token is meant for another server";
  EXPECT_EQ(with_claim("aud", "https://mcp.example.org"), refused);
  EXPECT_EQ(with_claim("aud", audience + "/"), refused);
  EXPECT_EQ(with_claim("aud", json::array()), refused);
  EXPECT_EQ(with_claim("aud", json{{"x", audience}}), refused);
  EXPECT_EQ(without_claim("aud"), refused);
}

TEST(access_token, issuers) {
  const std::string refused = "the token is from an issuer that isn't configured";
  EXPECT_EQ(with_claim("iss", "https://login.example.org"), refused) << "the slash counts";
  EXPECT_EQ(with_claim("iss", 5), refused);
  EXPECT_EQ(without_claim("iss"), refused);
  // One issuer's key doesn't speak for another.
  auto config = resource();
  config.issuers.push_back(config.issuers[0]);
  config.issuers[1].issuer = "https://other.example";
  EXPECT_TRUE(outcome(token([] {
                        auto claims = good_claims();
                        claims["iss"] = "https://other.example";
                        return claims;
                      }()),
                      config)
                  .starts_with("unknown key: "));
}

TEST(access_token, scopes) {
  EXPECT_EQ(with_claim("scope", "openid"), "scope: the token hasn't the scope mcp");
  EXPECT_EQ(with_claim("scope", "mcpx xmcp"), "scope: the token hasn't the scope mcp");
  EXPECT_EQ(without_claim("scope"), "scope: the token hasn't the scope mcp");
  for (const json& scopes : {json("a mcp"), json{"a", "mcp"}}) {
    auto claims = good_claims();
    claims.erase("scope");
    claims["scp"] = scopes;
    EXPECT_EQ(outcome(token(claims)), "ok") << scopes;
  }
  auto config = resource();
  config.scopes.clear();
  auto claims = good_claims();
  claims.erase("scope");
  EXPECT_EQ(outcome(token(claims), config), "ok");
}

TEST(access_token, tenants) {
  const std::string refused = "the token's claim \"team\" names no tenant";
  for (const json& odd : {json("../x"), json(""), json(5), json{"ali"}, json("Ali")}) {
    EXPECT_EQ(with_claim("team", odd), refused) << odd;
  }
  EXPECT_EQ(without_claim("team"), refused);
  auto config = resource();
  config.issuers[0].tenant = "bob";
  auto fixed = check_access_token(token(good_claims()), config, keys(), now);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->tenant, "bob") << "whatever the token says";
}

TEST(access_token, kinds) {
  for (const auto* type : {"at+jwt", "AT+JWT", "application/at+jwt", "JWT"}) {
    EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256", {{"kid", "r1"}, {"typ", type}})), "ok");
  }
  const std::string refused = "the token is of a kind that isn't understood";
  for (const json& odd : {json("dpop+jwt"), json("logout+jwt"), json(5)}) {
    EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256", {{"kid", "r1"}, {"typ", odd}})),
              refused);
  }
  EXPECT_EQ(outcome(token(good_claims(), rsa(), "RS256",
                          {{"kid", "r1"}, {"crit", {"b64"}}, {"b64", false}})),
            refused);
}

TEST(access_token, what_is_no_token) {
  const std::string refused = "the token is no signed JWT";
  auto good = token(good_claims());
  for (const auto& odd :
       {std::string{"a"}, std::string{".."}, std::string{"a.b"}, std::string{"a.b.c"}, good + ".x",
        good + "=", " " + good, good.substr(0, good.find('.')), std::string(3, '.'),
        "bh_" + std::string(43, 'a'), encode_base64url("[]") + "." + encode_base64url("{}") + ".AA",
        encode_base64url("{\"alg\":\"RS256\",\"alg\":\"none\"}") + "." + encode_base64url("{}") +
            ".AA",
        encode_base64url(std::string(3000, '[')) + "." + encode_base64url("{}") + ".AA"}) {
    EXPECT_EQ(outcome(odd), refused) << odd;
  }
  EXPECT_EQ(outcome(""), "the token is too long, or empty");
  EXPECT_EQ(outcome(good + std::string(longest_access_token, 'a')),
            "the token is too long, or empty");
}

TEST(key_set, what_is_left_out) {
  auto good = rsa_jwk(rsa(), "r1");
  auto with = [&](const char* name, const json& value) {
    auto key = good;
    key[name] = value;
    return key;
  };
  auto small = rsa_jwk(make_rsa(1024), "small");
  auto curve = ec_jwk(make_ec("P-256"), "curve");
  curve["crv"] = "P-384";
  auto off = ec_jwk(ec(), "off");
  off["x"] = off["y"];
  for (const json& odd :
       {small, curve, off, with("use", "enc"), with("key_ops", {"encrypt"}), with("alg", "RS512"),
        with("d", "AQAB"), with("e", "AQ"), with("e", "AA"), with("n", "!"), with("kty", "OKP"),
        with("kid", std::string(300, 'k')), json(5), json::object()}) {
    EXPECT_FALSE(read_key_set(set_of({odd}))) << odd;
    auto both = read_key_set(set_of({odd, ec_jwk(ec(), "e1")}));
    ASSERT_TRUE(both) << odd;
    EXPECT_EQ(both->keys().size(), 1U) << odd;
  }
  auto narrowed = read_key_set(set_of({with("alg", "PS256")}));
  ASSERT_TRUE(narrowed);
  EXPECT_EQ(narrowed->keys()[0].algorithms, std::vector<std::string>{"PS256"});
  EXPECT_TRUE(read_key_set(set_of({with("use", "sig")})));
  for (const auto* text :
       {"", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[],\"keys\":[]}"}) {
    EXPECT_FALSE(read_key_set(text)) << text;
  }
  std::vector<json> many(100, ec_jwk(ec(), "e"));
  EXPECT_EQ(read_key_set(json{{"keys", many}}.dump())->keys().size(), 64U);
}

TEST(oauth_resource, document) {
  auto document = json::parse(resource_document(resource()));
  EXPECT_EQ(document, (json{{"resource", audience},
                            {"authorization_servers", {issuer}},
                            {"scopes_supported", {"mcp"}},
                            {"bearer_methods_supported", {"header"}}}));
  EXPECT_EQ(resource_document_path(resource()), "/.well-known/oauth-protected-resource/mcp");
  EXPECT_EQ(resource_document_url(resource()),
            "https://mcp.example.org/.well-known/oauth-protected-resource/mcp");
  auto root = resource();
  root.resource = "https://mcp.example.org:8443/";
  EXPECT_EQ(resource_document_url(root),
            "https://mcp.example.org:8443/.well-known/oauth-protected-resource");
}

TEST(oauth_resource, challenges) {
  const std::string where = "resource_metadata=\"https://mcp.example.org/.well-known/"
                            "oauth-protected-resource/mcp\"";
  EXPECT_EQ(bearer_challenge_text(resource(), bearer_fault::no_token),
            "Bearer scope=\"mcp\", " + where);
  EXPECT_EQ(bearer_challenge_text(resource(), bearer_fault::invalid_token),
            "Bearer error=\"invalid_token\", " + where);
  EXPECT_EQ(bearer_challenge_text(resource(), bearer_fault::insufficient_scope),
            "Bearer error=\"insufficient_scope\", scope=\"mcp\", " + where);
}

TEST(oauth_resource, where_the_keys_are) {
  auto of = [](const json& document) { return read_jwks_uri(document.dump(), issuer); };
  EXPECT_EQ(*of({{"issuer", issuer}, {"jwks_uri", "https://login.example.org/keys"}}),
            "https://login.example.org/keys");
  EXPECT_EQ(of({{"issuer", "https://evil.example"}, {"jwks_uri", "https://e/keys"}}).error().code,
            errc::denied);
  EXPECT_EQ(of({{"issuer", issuer}, {"jwks_uri", "http://login.example.org/keys"}}).error().code,
            errc::denied);
  EXPECT_EQ(of({{"issuer", issuer}}).error().code, errc::malformed);
  EXPECT_FALSE(read_jwks_uri("{", issuer));
}

} // namespace
} // namespace bulkhead
