#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/client_abilities.hpp"
#include "protocol/error.hpp"
#include "protocol/limits.hpp"
#include "protocol/mcp_request.hpp"
#include "protocol/upstream_text.hpp"

/// What a server asks and tells in the middle of a call: questions to the client (legacy servers by
/// requests of their own, modern ones by results that require input), progress, logs.
namespace bulkhead::upstream {

/// What a server asks of the client.
struct question {
  std::string method;
  std::string params; ///< JSON object
  friend bool operator==(const question&, const question&) = default;
};

/// Can only the client, or the person in front of it, answer this method?
bool is_for_client(std::string_view method);

/// Reads a question for the client, which must be one that `declared` allows, of at most
/// `bounds.question` bytes. Left out is what concerns this connection alone (`_meta`, `task`), and
/// `includeContext`, by which a server would get what other servers told the client. A page to be
/// opened must be one of the web. Refusals: -32601 for a method that wasn't declared, -32602 for a
/// mode or feature that wasn't (2025-11-25, client/elicitation "Error Handling").
tl::expected<question, rpc_refusal> read_question(std::string_view method, std::string_view params,
                                                  const client_abilities& declared,
                                                  const limits& bounds);

/// What a server is told whose question got no answer.
rpc_refusal unanswered(std::string_view method, const error& reason);

/// One entry of `inputRequests` (2026-07-28, "Multi Round-Trip Requests").
struct input_request {
  std::string key;
  std::string method;
  std::string_view params; ///< JSON text within the result; empty when absent
};

/// A result that requires input before the call goes on. The views point into the result.
struct input_required {
  std::vector<input_request> requests;
  std::string_view state; ///< JSON text exactly as it came; empty when absent
};

/// Reads a scanned `tools/call` result. Nothing: it is complete. Errors: server_failed for one that
/// is no object, of an unknown type, or asks for more than `bounds.call_questions` inputs at once;
/// the text is the end of a sentence about the call.
expected<std::optional<input_required>> read_call_result(bool modern, std::string_view result,
                                                         const limits& bounds);

/// The answer to one input request: a result as JSON text.
struct input_response {
  std::string key;
  std::string result;
};

/// The result of `roots/list`; `uris` are file:// URIs.
std::string roots_result(const std::vector<std::string>& uris);

/// How far a call is (`notifications/progress`); texts are printable and cut to 256 bytes.
struct progress_note {
  std::uint64_t call = 0; ///< the token, which is the call's request id
  double progress = 0;
  double total = 0; ///< 0: unknown
  std::string message;
  friend bool operator==(const progress_note&, const progress_note&) = default;
};

/// Nothing for notes that are unusable or about something else.
std::optional<progress_note> read_progress(std::string_view params, const secret_filter& secrets);

/// What `notifications/message` says, in one printable line of at most 512 bytes.
std::string read_log(std::string_view params, const secret_filter& secrets);

} // namespace bulkhead::upstream
