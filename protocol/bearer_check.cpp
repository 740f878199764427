#include "protocol/bearer_check.hpp"

#include "protocol/http_rules.hpp"
#include "protocol/json_rpc.hpp"

namespace bulkhead {

namespace {

using answer = tl::expected<std::string, outgoing_answer>;

/// Until keys that are being fetched are there.
constexpr const char* retry_seconds = "2";

answer refuse(std::uint32_t status, std::string_view message, std::string challenge) {
  auto made = refusal(status, rpc_code::invalid_request, message);
  made.fields.push_back({"WWW-Authenticate", std::move(challenge)});
  return tl::unexpected<outgoing_answer>(std::move(made));
}

/// What a client is told of where to get a token, as far as there is such a place.
std::string challenge(const key_ring::contents& known, bearer_fault fault) {
  if (known.resource) {
    return bearer_challenge_text(*known.resource, fault);
  }
  return fault == bearer_fault::invalid_token ? R"(Bearer error="invalid_token")" : "Bearer";
}

answer invalid(const key_ring::contents& known) {
  return refuse(401, "the token isn't valid", challenge(known, bearer_fault::invalid_token));
}

} // namespace

tl::expected<std::string, outgoing_answer> bearer_check::operator()(std::string_view token) const {
  auto known = keys->get();
  if (token.empty()) {
    return refuse(401, "this server wants a token: Authorization: Bearer TOKEN",
                  challenge(*known, bearer_fault::no_token));
  }
  if (looks_like_token(token)) {
    auto holder = tokens->get()->find(token, wall_clock());
    return holder ? answer{holder->tenant} : invalid(*known);
  }
  if (!known->resource) {
    return invalid(*known);
  }
  auto grant = check_access_token(token, *known->resource, known->keys, wall_clock());
  if (grant) {
    return grant->tenant;
  }
  const auto& refused = grant.error();
  if (note) {
    note(refused.reason);
  }
  if (refused.what == access_refusal::kind::scope) {
    return refuse(403, "the token hasn't the scopes that this server wants",
                  challenge(*known, bearer_fault::insufficient_scope));
  }
  if (refused.what == access_refusal::kind::unknown_key) {
    auto asked = keys->ask(refused.issuer, clock());
    if (asked == key_ring::asking::begin) {
      fetch(refused.issuer);
    }
    if (asked != key_ring::asking::too_soon) {
      auto later = refusal(503, rpc_code::internal_error,
                           "the keys of the token's issuer are being fetched; try again");
      later.fields.push_back({"Retry-After", retry_seconds});
      return tl::unexpected<outgoing_answer>(std::move(later));
    }
  }
  return invalid(*known);
}

} // namespace bulkhead
