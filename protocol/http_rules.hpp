#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"

namespace bulkhead {

/// Who may ask what of the listener, as far as a request's header tells.
struct http_rules {
  std::string path = "/mcp";
  /// The hosts that a request may be meant for (`Host`) and come from (`Origin`), in lower case and
  /// without a port, any of which will do: others are pages that reach us under a name that now
  /// leads here (DNS rebinding), or that have no business with us.
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "[::1]"};
  /// Who has this bearer token; nothing for an unknown one. Null: no token is needed, and everybody
  /// is "local". Whoever compares tokens does it in constant time (`equal_secrets`).
  std::function<std::optional<std::string>(std::string_view token)> holder;
  /// In place of `holder`, where there is more to say than that a token isn't valid: who has this
  /// bearer token, which is empty where none came, or the refusal (see bearer_check).
  std::function<tl::expected<std::string, outgoing_answer>(std::string_view token)> authenticate;
};

/// Checks all that a request's header tells by itself, before its body is read: path, Host (400,
/// 403), Origin (403), token (401), method (405), types (406, 415). Answers the principal, or the
/// refusal.
tl::expected<std::string, outgoing_answer> check_head(const incoming_request& request,
                                                      const http_rules& rules);

/// Do two secrets agree? Takes as long whatever they have in common.
bool equal_secrets(std::string_view one, std::string_view other);

/// A refusal that is a JSON-RPC error without an id, for people and programs.
outgoing_answer refusal(std::uint32_t status, int code, std::string_view message,
                        std::string_view id = {}, std::string_view data = {});

/// What the listener says by itself with a status: 400, 408, 413, 431, 500 or 503.
outgoing_answer explain_status(std::uint32_t status);

} // namespace bulkhead
