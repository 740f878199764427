#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"

namespace bulkhead {

/// Something that the listener has besides MCP, e.g. a page for people or figures for a collector.
struct http_page {
  /// As it stands in a request's target before any `?`. One that ends in `/` stands for all that
  /// begins with it, unless another page's path fits better (longer, or exact).
  std::string path;
  /// GET brings HEAD with it, which the listener answers as a GET without its body. A POST's body
  /// is JSON, as with MCP, which no page elsewhere can send without asking first (CORS).
  std::vector<std::string> methods = {"GET"};
  /// Else it is for everybody, and the request's principal is empty.
  bool needs_token = true;
};

/// Who may ask what of the listener, as far as a request's header tells.
struct http_rules {
  std::string path = "/mcp"; ///< of MCP; empty: there is none
  std::vector<http_page> pages{};
  /// The hosts that a request may be meant for (`Host`) and come from (`Origin`), in lower case and
  /// without a port, any of which will do: others are pages that reach us under a name that now
  /// leads here (DNS rebinding), or that have no business with us.
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "[::1]"};
  /// Who has this bearer token, which is empty where none came, or the refusal (see bearer_check).
  /// Null: no token is needed, and everybody is "local". Whoever compares tokens does it in
  /// constant time (`equal_secrets`).
  std::function<tl::expected<std::string, outgoing_answer>(std::string_view token)> authenticate;
};

/// Checks all that a request's header tells by itself, before its body is read: Host (400, 403),
/// Origin (403), token (401), path (404), method (405), types (406 with MCP alone; 415). Answers
/// the principal, or the refusal. Without a token nobody learns what paths there are but the public
/// pages.
tl::expected<std::string, outgoing_answer> check_head(const incoming_request& request,
                                                      const http_rules& rules);

/// The token of a request that has exactly one Authorization, which is a bearer's; else empty.
std::string_view bearer_token(const incoming_request& request);

/// Do two secrets agree? Takes as long whatever they have in common.
bool equal_secrets(std::string_view one, std::string_view other);

/// A refusal that is a JSON-RPC error without an id, for people and programs.
outgoing_answer refusal(std::uint32_t status, int code, std::string_view message,
                        std::string_view id = {}, std::string_view data = {});

/// What the listener says by itself with a status: 400, 408, 413, 414, 417,
/// 431, 500, 503 or 505.
outgoing_answer explain_status(std::uint32_t status);

} // namespace bulkhead
