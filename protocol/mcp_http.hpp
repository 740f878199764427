#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/json_rpc.hpp"

/// MCP over HTTP as pure code: what a client's message needs, and what an answer is. Streamable
/// HTTP (2025-03-26 to 2025-11-25 and 2026-07-28) and HTTP with server-sent events (2024-11-05).
namespace bulkhead::upstream {

/// A message of ours, looked at for what its HTTP request needs. The views point into its text.
struct outgoing_message {
  rpc_kind kind = rpc_kind::notification;
  std::uint64_t id = 0; ///< of a request of ours; 0 for others
  std::string method;   ///< of requests and notifications
  std::string tool;     ///< of tools/call
  std::string_view arguments;
  std::string_view meta;     ///< the params' `_meta`
  bool modern = false;       ///< it says so in its `_meta`
  std::uint64_t cancels = 0; ///< the request that notifications/cancelled names
};

/// Reads a message that is ours, so that only a fault of our own makes it unreadable: malformed.
expected<outgoing_message> read_outgoing(std::string_view line, const scan_limits& bounds);

enum class body_kind : std::uint8_t { none, json, events, other };

/// By the value of Content-Type; empty: none.
body_kind kind_of_body(std::string_view content_type);

/// The line by which a client learns that an answer of status 4xx or 5xx holds a JSON-RPC error for
/// its request (also one without an id); empty if it doesn't.
std::string error_line(std::string_view body, std::uint64_t id, const scan_limits& bounds);

/// Does a status, with that body, say that the session it was sent in is over? 404 does
/// (2025-11-25, "Session Management"); some servers say 400.
bool ends_session(std::uint32_t status, std::string_view body);

/// "HTTP 503 Service Unavailable: the start of a plain text", for people; pages of HTML are left
/// out.
std::string describe_status(std::uint32_t status, body_kind kind, std::string_view body);

/// The request for a stream of a modern server's changes (2026-07-28, "subscriptions/listen"), with
/// the `_meta` of another request of ours. Its id is a text, unlike those of other requests.
std::string encode_listen(std::string_view meta);

/// Does the result of `server/discover` say that the list of tools may change by itself?
bool announces_tool_changes(std::string_view result);

/// The revision that a result of `initialize` names; empty if none.
std::string agreed_revision(std::string_view result);

} // namespace bulkhead::upstream
