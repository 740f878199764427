#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/json_rpc.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/trace_context.hpp"

namespace bulkhead {

/// The server's view of what a client asks, in both eras of MCP: the legacy era (up to 2025-11-25)
/// opens with `initialize`; in the modern era (2026-07-28) every request describes itself in
/// `params._meta`.

inline constexpr std::string_view modern_revision = "2026-07-28";
inline constexpr std::string_view latest_legacy_revision = "2025-11-25";

/// The legacy revision to serve a client that asks for `requested`: the same if we know it, else
/// the latest (2025-11-25, basic/lifecycle "Version Negotiation").
std::string_view negotiate_revision(std::string_view requested);

/// The severities of RFC 5424, §6.2.1, as MCP names them.
enum class log_severity : std::uint8_t {
  debug,
  info,
  notice,
  warning,
  error,
  critical,
  alert,
  emergency,
};

std::string_view to_string(log_severity severity);
std::optional<log_severity> severity_from_string(std::string_view name);

/// A JSON-RPC error to be sent; `data` is JSON text or empty.
struct rpc_refusal {
  int code = rpc_code::internal_error;
  std::string message;
  std::string data;
  friend bool operator==(const rpc_refusal&, const rpc_refusal&) = default;
};

/// The outline of a part of a message, which has been scanned with it; empty for what is no object.
json_outline outline_of_part(std::string_view json);

/// A request's params and what its `_meta` says. The views point into the message's text.
struct mcp_request {
  bool modern = false;
  json_outline params;
  std::string progress_token;            ///< JSON text, e.g. `0` or `"a"`; empty: none given
  std::optional<log_severity> log_level; ///< modern: logs wanted for this request
  std::string_view abilities;            ///< modern: the client's capabilities, a JSON object
  trace_context trace{};                 ///< that the request is a part of; of either era

  /// The JSON text of the argument `name`; empty when absent or null.
  std::string_view find(std::string_view name) const;
  /// The string argument `name`; nothing when it is absent or no string.
  std::optional<std::string> text(std::string_view name) const;
};

/// Reads params and `_meta` of a request or notification and tells its era: modern if `_meta` names
/// a protocol version (or another of the era's required keys), or the method exists there only.
/// `initialize` is modern only with a sound modern `_meta`. Refuses: params that are no object, an
/// unusable `_meta`, a protocol version we don't serve (-32022, naming those we do).
tl::expected<mcp_request, rpc_refusal> read_mcp_request(const rpc_message& message,
                                                        const scan_limits& bounds);

/// The refusal of a request that names no protocol version although it must.
rpc_refusal missing_protocol_version();

/// Tells why `text` is no JSON-RPC message, with `parse_rpc`'s error for it: -32700 when it is no
/// JSON, else -32600; `id` gets the request's id if one can be read.
rpc_refusal explain_unreadable(std::string_view text, const error& reason,
                               const scan_limits& bounds, std::string& id);

} // namespace bulkhead
