#include "protocol/tenant_token.hpp"

#include <algorithm>

#include "protocol/base64.hpp"
#include "protocol/content_digest.hpp"
#include "protocol/http_rules.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view prefix = "bh_";
constexpr std::size_t random_characters = 43;

} // namespace

std::string make_token(std::string_view random) {
  return std::string{prefix} + encode_base64url(random);
}

bool looks_like_token(std::string_view text) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return text.size() == prefix.size() + random_characters && text.starts_with(prefix) &&
         std::all_of(text.begin(), text.end(), allowed);
}

std::string token_hash(std::string_view token) {
  return content_digest(token);
}

bool is_valid(const tenant_token& token, std::chrono::sys_seconds now) {
  return !token.expires || now < *token.expires;
}

token_book::token_book(const serve_config& config) {
  for (const auto& one : config.tenants) {
    for (const auto& token : one.tokens) {
      entries_.push_back({token, one.name});
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const entry& one, const entry& other) {
    return one.token.sha256 < other.token.sha256;
  });
}

std::optional<token_holder> token_book::find(std::string_view token,
                                             std::chrono::sys_seconds now) const {
  if (!looks_like_token(token)) {
    return std::nullopt;
  }
  auto hash = token_hash(token);
  auto found = std::lower_bound(
      entries_.begin(), entries_.end(), hash,
      [](const entry& each, const std::string& wanted) { return each.token.sha256 < wanted; });
  if (found == entries_.end() || !equal_secrets(found->token.sha256, hash) ||
      !is_valid(found->token, now)) {
    return std::nullopt;
  }
  return token_holder{found->tenant, found->token.id};
}

} // namespace bulkhead
