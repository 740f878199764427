#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/trace_context.hpp"

namespace bulkhead {

/// MCP's Streamable HTTP, of both eras on one endpoint, as far as it is a matter of texts: what a
/// POST brings, and how messages are addressed and framed (2025-11-25 basic/transports; 2026-07-28
/// basic/transports/streamable-http).

/// A parameter of a tool that clients mirror in a header (`x-mcp-header`).
struct mirrored_parameter {
  std::string argument;
  std::string header; ///< without "Mcp-Param-"
};

/// The mirrored parameters of the tool with that name.
using mirrored_parameters = std::function<std::vector<mirrored_parameter>(std::string_view tool)>;

/// What a POST brings.
struct posted_message {
  enum class era : std::uint8_t { legacy, modern };

  rpc_kind kind = rpc_kind::notification;
  era of = era::legacy;
  std::string id; ///< of a request, JSON text
  std::string method;
  bool initializes = false; ///< the request that opens a session of the legacy era
};

/// Reads the body of a POST and checks the header against it. The modern era speaks who names its
/// revision, in `_meta` or in the header, except to `initialize`. Refuses: what is no JSON-RPC
/// message, a revision that isn't known, a modern request whose `_meta` lacks something, a header
/// that is missing or says something else (-32020); all with status 400.
tl::expected<posted_message, outgoing_answer> read_post(const incoming_request& request,
                                                        const scan_limits& bounds,
                                                        const mirrored_parameters& mirrored = {});

/// Is the revision that a GET or a DELETE names, if any, one with sessions? Answers the refusal:
/// 405 for the modern one, 400 for an unknown one.
tl::expected<void, outgoing_answer> check_session_era(const incoming_request& request);

/// The trace that a request's header says it is a part of. Several traceparents are as good as
/// none; several tracestates are one list.
trace_context trace_of(const incoming_request& request);

/// The text that a header's value stands for, decoded if it is in the form "=?base64?…?="; nothing
/// when that is malformed.
std::optional<std::string> decode_header_value(std::string_view value);

/// The request with another id (JSON text).
std::string with_request_id(std::string_view message, std::string_view id);

/// A message of ours about the request that we call `ours`, as its client knows it: `theirs` takes
/// that id's place, also where a subscription is named by it (`_meta`).
std::string readdressed(std::string_view message, std::string_view ours, std::string_view theirs);

/// How the modern era answers a request with this message, a response: 200, or the status that
/// belongs to the error's code.
std::uint32_t status_of_response(std::string_view message);

/// The `data` of the error that says that there is too much to do, and when to try again.
std::string overload_data(std::chrono::seconds again);
/// When to try again, if a response is that error.
std::optional<std::chrono::seconds> overload_wait(std::string_view message);

/// Is a message of ours a response, i.e. the last one about its request? And one that is an error?
bool is_response(std::string_view message);
bool is_error_response(std::string_view message);

/// One event of a stream with a message of one line, its end left out or not; without an id when
/// that is empty.
std::string encode_event(std::string_view id, std::string_view message);

/// The event without data that a stream begins with, so that whoever loses it has an id to go on
/// from.
std::string encode_priming_event(std::string_view id);

/// Tells the client how long to wait before it comes back, in milliseconds.
std::string encode_retry(std::uint32_t milliseconds);

/// Keeps a silent stream from looking dead.
std::string encode_keep_alive();

/// Where a stream broke off: the number of the stream and of the last event that arrived.
struct event_place {
  std::uint64_t stream = 0;
  std::uint64_t event = 0;
  friend bool operator==(const event_place&, const event_place&) = default;
};

/// An event's id within its session, and back.
std::string to_string(event_place place);
std::optional<event_place> read_event_place(std::string_view id);

} // namespace bulkhead
