#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"
#include "protocol/key_ring.hpp"
#include "protocol/tenant_token.hpp"

namespace bulkhead {

/// Tells whose request it is by the token that comes with it: one of Bulkhead's own, or an access
/// token of an authorization server. To be called on any thread (see http_rules::authenticate).
struct bearer_check {
  std::shared_ptr<const current_tokens> tokens;
  std::shared_ptr<key_ring> keys;
  std::function<std::chrono::sys_seconds()> wall_clock;
  std::function<key_ring::clock::time_point()> clock;
  /// Has the keys of an issuer fetched; called when `key_ring::ask` says so.
  std::function<void(const std::string& issuer)> fetch;
  /// Why a token was refused, for the log; nothing of the token is in it. May be null.
  std::function<void(const std::string& reason)> note;

  /// The tenant whose token it is; `token` is empty where none came. Or the refusal: 401, 403 (it
  /// isn't meant for this), 503 (whether it is good will be known in a moment).
  tl::expected<std::string, outgoing_answer> operator()(std::string_view token) const;
};

} // namespace bulkhead
