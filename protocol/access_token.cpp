#include "protocol/access_token.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/ascii.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"
#include "protocol/tenant_config.hpp"

namespace bulkhead {

namespace {

using json = nlohmann::json;
using std::chrono::sys_seconds;

tl::unexpected<access_refusal> refuse(std::string reason) {
  return tl::unexpected<access_refusal>(
      access_refusal{access_refusal::kind::invalid, std::move(reason)});
}

/// The parts of a compact JWS (RFC 7515, 7.1).
struct jws_parts {
  std::string_view header;
  std::string_view payload;
};

std::optional<jws_parts> split(std::string_view token) {
  auto allowed = [](char c) {
    auto lower = lower_case(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  auto first = token.find('.');
  auto second = token.find('.', std::min(first, token.size() - 1) + 1);
  bool three = std::count(token.begin(), token.end(), '.') == 2 && first > 0 &&
               second > first + 1 && second + 1 < token.size();
  if (!three || !std::all_of(token.begin(), token.end(), allowed)) {
    return std::nullopt;
  }
  return jws_parts{token.substr(0, first), token.substr(first + 1, second - first - 1)};
}

/// A part as the JSON object that it encodes, scanned: no key stands there twice.
std::optional<json> object_of(std::string_view part) {
  auto text = decode_base64url(part);
  auto outline = text ? scan_json(*text, {longest_access_token, 8, 1'000})
                      : expected<json_outline>{fail(errc::malformed, "")};
  if (!outline || !outline->is_object) {
    return std::nullopt;
  }
  auto object = json::parse(*text, nullptr, false);
  return object.is_object() ? std::optional(std::move(object)) : std::nullopt;
}

/// Is the header's type that of an access token (RFC 9068, 2.1), or of any JWT, or not told?
bool is_access_type(const json& header) {
  constexpr std::array<std::string_view, 4> types = {"at+jwt", "application/at+jwt", "jwt",
                                                     "application/jwt"};
  auto type = lower_case(text_member(header, "typ"));
  return !header.contains("typ") || std::find(types.begin(), types.end(), type) != types.end();
}

/// The keys that may have signed it. Several may have the same id (RFC 7517, 4.5: "SHOULD" be
/// distinct).
tl::expected<std::vector<const verification_key*>, access_refusal>
choose_keys(const json& header, const std::string& algorithm, const std::string& issuer,
            const issuer_keys& keys) {
  auto unknown = [&](std::string reason) {
    return tl::unexpected<access_refusal>(
        access_refusal{access_refusal::kind::unknown_key, std::move(reason), issuer});
  };
  auto set = keys.find(issuer);
  if (set == keys.end() || !set->second) {
    return unknown("the issuer's keys aren't known");
  }
  auto fits = [&](const verification_key& key) {
    return std::find(key.algorithms.begin(), key.algorithms.end(), algorithm) !=
           key.algorithms.end();
  };
  bool named = header.contains("kid");
  auto id = text_member(header, "kid");
  std::vector<const verification_key*> found;
  for (const auto& key : set->second->keys()) {
    if (fits(key) && (!named || key.id == id)) {
      found.push_back(&key);
    }
  }
  if (!named && found.size() != 1) {
    return refuse("the token doesn't say which of the issuer's keys it is signed with");
  }
  if (!found.empty()) {
    return found;
  }
  return set->second->knows(id)
             ? refuse("the key that the token names is for another algorithm")
             : unknown("the token is signed with a key that isn't among the issuer's");
}

/// A NumericDate (RFC 7519, 2); nothing for what is none.
std::optional<double> moment(const json& claims, const char* name) {
  constexpr double latest = 253402300800.0; // the year 10000
  auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) {
    return std::nullopt;
  }
  auto value = found->get<double>();
  return value >= 0 && value < latest ? std::optional(value) : std::nullopt;
}

/// What is wrong with the token's times; empty when nothing is.
std::string fault_of_times(const json& claims, sys_seconds now) {
  auto at = static_cast<double>(now.time_since_epoch().count());
  auto leeway = static_cast<double>(token_leeway.count());
  auto end = moment(claims, "exp");
  if (!end) {
    return "the token doesn't say when it expires";
  }
  if (at >= *end + leeway) {
    return "the token has expired";
  }
  for (const char* name : {"nbf", "iat"}) {
    auto begin = moment(claims, name);
    if (claims.contains(name) && (!begin || at + leeway < *begin)) {
      return "the token isn't valid yet";
    }
  }
  return {};
}

bool is_meant_for(const json& claims, const std::string& audience) {
  auto all = text_members(claims, "aud");
  return text_member(claims, "aud") == audience ||
         std::find(all.begin(), all.end(), audience) != all.end();
}

/// `scope` (RFC 9068, 2.2.3), or `scp`, as some issuers write it: a text, or a list.
std::vector<std::string> scopes_of(const json& claims) {
  auto result = read_scopes(text_member(claims, "scope"));
  result = joined_scopes(std::move(result), read_scopes(text_member(claims, "scp")));
  return joined_scopes(std::move(result), text_members(claims, "scp"));
}

tl::expected<access_grant, access_refusal> check_claims(const json& claims,
                                                        const oauth_resource& resource,
                                                        const oauth_issuer& issuer,
                                                        sys_seconds now) {
  if (auto why = fault_of_times(claims, now); !why.empty()) {
    return refuse(std::move(why));
  }
  if (!is_meant_for(claims, issuer.audience)) {
    return refuse("the token is meant for another server");
  }
  auto scopes = scopes_of(claims);
  for (const auto& wanted : resource.scopes) {
    if (std::find(scopes.begin(), scopes.end(), wanted) == scopes.end()) {
      return tl::unexpected<access_refusal>(access_refusal{
          access_refusal::kind::scope, fmt::format("the token hasn't the scope {}", wanted)});
    }
  }
  access_grant grant{issuer.tenant, text_member(claims, "sub"), issuer.issuer};
  if (grant.tenant.empty()) {
    grant.tenant = text_member(claims, issuer.tenant_claim.c_str());
  }
  if (!is_tenant_name(grant.tenant)) {
    return refuse(fmt::format("the token's claim \"{}\" names no tenant", issuer.tenant_claim));
  }
  return grant;
}

} // namespace

tl::expected<access_grant, access_refusal> check_access_token(std::string_view token,
                                                              const oauth_resource& resource,
                                                              const issuer_keys& keys,
                                                              sys_seconds now) {
  if (token.empty() || token.size() > longest_access_token) {
    return refuse("the token is too long, or empty");
  }
  auto parts = split(token);
  auto header = parts ? object_of(parts->header) : std::nullopt;
  auto claims = header ? object_of(parts->payload) : std::nullopt;
  if (!claims) {
    return refuse("the token is no signed JWT");
  }
  // Unverified until the signature is: it only tells which key has to verify it.
  const auto* issuer = resource.find(text_member(*claims, "iss"));
  if (issuer == nullptr) {
    return refuse("the token is from an issuer that isn't configured");
  }
  auto algorithm = text_member(*header, "alg");
  if (std::find(issuer->algorithms.begin(), issuer->algorithms.end(), algorithm) ==
      issuer->algorithms.end()) {
    return refuse("the token is signed with an algorithm that isn't configured");
  }
  // Whatever is critical (RFC 7515, 4.1.11) would have to be understood, and nothing is.
  if (header->contains("crit") || !is_access_type(*header)) {
    return refuse("the token is of a kind that isn't understood");
  }
  auto candidates = choose_keys(*header, algorithm, issuer->issuer, keys);
  if (!candidates) {
    return tl::unexpected<access_refusal>(candidates.error());
  }
  expected<void> verified;
  for (const auto* key : *candidates) {
    if (verified = verify_jws(token, *key, algorithm); verified) {
      break;
    }
  }
  if (!verified) {
    return refuse(verified.error().message);
  }
  return check_claims(*claims, resource, *issuer, now);
}

} // namespace bulkhead
