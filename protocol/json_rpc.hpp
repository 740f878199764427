#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

/// JSON-RPC 2.0 as MCP uses it: one object a message, no batches since 2025-06-18.

/// Error codes of JSON-RPC 2.0 §5.1 and of MCP (2025-11-25 and 2026-07-28).
namespace rpc_code {
inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int internal_error = -32603;
inline constexpr int resource_not_found = -32002;           // legacy era only
inline constexpr int url_elicitation_required = -32042;     // 2025-11-25 only
inline constexpr int header_mismatch = -32020;              // modern era
inline constexpr int missing_client_capability = -32021;    // modern era
inline constexpr int unsupported_protocol_version = -32022; // modern era
} // namespace rpc_code

enum class rpc_kind : std::uint8_t { request, notification, response };

/// Bytes of an id's JSON text; whoever waits for an answer keeps it.
inline constexpr std::size_t rpc_id_limit = 512;

/// A message's envelope; the views point into the scanned text.
struct rpc_message {
  rpc_kind kind = rpc_kind::notification;
  /// The id's JSON text, e.g. `0`, `"a"`, in one spelling for each string so that equal ids compare
  /// equal; empty for notifications and for errors about a message whose id could not be read.
  std::string id;
  std::string method;      ///< requests and notifications
  std::string_view params; ///< JSON text of an object or array; empty when absent
  std::string_view result; ///< responses: JSON text; empty when it is an error
  std::string_view error;  ///< responses: JSON text of the error object
};

/// Reads one message. Errors: malformed (no JSON, or no JSON-RPC 2.0), too_large. An id is a string
/// or an integer; an error response may also have a null id or none (JSON-RPC 2.0, section 5);
/// anything else is malformed.
expected<rpc_message> parse_rpc(std::string_view text, const scan_limits& bounds);

/// Each of these is one line, newline included; `id`, `params`, `result` are JSON texts, of which
/// `params` and `result` may hold line ends between tokens. Empty `params` are left out.
std::string encode_request(std::string_view id, std::string_view method, std::string_view params);
std::string encode_notification(std::string_view method, std::string_view params);
std::string encode_result(std::string_view id, std::string_view result);
/// `data` is JSON text or empty; an empty `id` becomes null.
std::string encode_error(std::string_view id, int code, std::string_view message,
                         std::string_view data = {});

} // namespace bulkhead
