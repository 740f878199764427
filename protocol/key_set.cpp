#include "protocol/key_set.hpp"

#include <algorithm>

#include <cjose/cjose.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/oauth_document.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t most_keys = 64;
constexpr std::size_t least_rsa_bytes = 2048 / 8;
constexpr std::size_t most_rsa_bytes = 8192 / 8;
constexpr std::size_t p256_bytes = 32;
constexpr std::size_t longest_id = 256;

using json = nlohmann::json;

/// Is the key for verifying signatures, as far as it says (RFC 7517, 4.2 and 4.3)?
bool is_for_signatures(const json& key) {
  if (key.contains("use") && text_member(key, "use") != "sig") {
    return false;
  }
  auto operations = text_members(key, "key_ops");
  return !key.contains("key_ops") ||
         std::find(operations.begin(), operations.end(), "verify") != operations.end();
}

/// The bytes of a number of a key; empty for none.
std::string number(const json& key, const char* name) {
  auto bytes = decode_base64url(text_member(key, name));
  return bytes.value_or(std::string{});
}

std::string without_zeros(std::string bytes) {
  bytes.erase(0, std::min(bytes.find_first_not_of('\0'), bytes.size()));
  return bytes;
}

/// RFC 7518, 6.3.1. The exponent is odd and more than one.
std::optional<json> rsa_numbers(const json& key) {
  auto modulus = without_zeros(number(key, "n"));
  auto exponent = without_zeros(number(key, "e"));
  bool sound = modulus.size() >= least_rsa_bytes && modulus.size() <= most_rsa_bytes &&
               !exponent.empty() && exponent.size() <= 4 && exponent != "\1" &&
               (exponent.back() & 1) != 0;
  return sound ? std::optional(json{{"kty", "RSA"}, {"n", key["n"]}, {"e", key["e"]}})
               : std::nullopt;
}

/// RFC 7518, 6.2.1.
std::optional<json> ec_numbers(const json& key) {
  bool sound = text_member(key, "crv") == "P-256" && number(key, "x").size() == p256_bytes &&
               number(key, "y").size() == p256_bytes;
  return sound ? std::optional(
                     json{{"kty", "EC"}, {"crv", "P-256"}, {"x", key["x"]}, {"y", key["y"]}})
               : std::nullopt;
}

std::optional<verification_key> read_key(const json& key) {
  if (!key.is_object() || !is_for_signatures(key) || key.contains("d")) {
    return std::nullopt;
  }
  bool rsa = text_member(key, "kty") == "RSA";
  bool ec = text_member(key, "kty") == "EC";
  auto numbers = rsa ? rsa_numbers(key) : ec ? ec_numbers(key) : std::nullopt;
  verification_key result{text_member(key, "kid"), {}, {}};
  result.algorithms =
      rsa ? std::vector<std::string>{"RS256", "PS256"} : std::vector<std::string>{"ES256"};
  if (key.contains("alg")) {
    auto only = text_member(key, "alg");
    std::erase_if(result.algorithms, [&](const std::string& each) { return each != only; });
  }
  if (!numbers || result.algorithms.empty() || result.id.size() > longest_id) {
    return std::nullopt;
  }
  // What the library gets has been read by us, and has nothing else in it.
  auto text = numbers->dump();
  cjose_err failure{};
  result.key = {cjose_jwk_import(text.data(), text.size(), &failure),
                [](cjose_jwk_t* made) { cjose_jwk_release(made); }};
  return result.key ? std::optional(std::move(result)) : std::nullopt;
}

} // namespace

bool key_set::knows(std::string_view id) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const verification_key& each) { return each.id == id; });
}

expected<key_set> read_key_set(std::string_view text) {
  auto document = read_oauth_document(text, "the key set");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  auto found = document->find("keys");
  if (found == document->end() || !found->is_array()) {
    return fail(errc::malformed, "the key set has no list \"keys\"");
  }
  std::vector<verification_key> keys;
  for (const auto& each : *found) {
    auto key = keys.size() < most_keys ? read_key(each) : std::nullopt;
    if (key) {
      keys.push_back(std::move(*key));
    }
  }
  if (keys.empty()) {
    return fail(errc::malformed,
                fmt::format("none of the {} keys in the set verifies RS256, PS256 or ES256",
                            found->size()));
  }
  return key_set{std::move(keys)};
}

expected<void> verify_jws(std::string_view compact, const verification_key& key,
                          std::string_view algorithm) {
  auto refused = fail(errc::denied, "the signature isn't valid");
  if (std::find(key.algorithms.begin(), key.algorithms.end(), algorithm) == key.algorithms.end()) {
    return refused;
  }
  cjose_err failure{};
  std::unique_ptr<cjose_jws_t, decltype(&cjose_jws_release)> jws{
      cjose_jws_import(compact.data(), compact.size(), &failure), cjose_jws_release};
  if (!jws) {
    return fail(errc::denied, "the token is no signed JWT");
  }
  // The library goes by the header that it read, which has to say what ours said.
  const char* named = cjose_header_get(cjose_jws_get_protected(jws.get()), CJOSE_HDR_ALG, &failure);
  if (named == nullptr || algorithm != named ||
      !cjose_jws_verify(jws.get(), key.key.get(), &failure)) {
    return refused;
  }
  return {};
}

} // namespace bulkhead
