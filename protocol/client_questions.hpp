#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/error.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {

/// What only a client, its model or the person in front of it can answer: `elicitation/create`,
/// `sampling/createMessage` and `roots/list`. In the legacy era these are requests to the client;
/// in the modern one they stand in a result that asks for more (2026-07-28, basic/patterns/mrtr).

/// The params to ask the client with, a JSON object, of those (scanned JSON object or empty) that
/// `server` asks with: what belongs to its own connection is left out, and a question for a person
/// begins with whose it is; an empty `server` stands for Bulkhead itself. Errors: invalid_argument.
expected<std::string> question_params(std::string_view method, std::string_view params,
                                      std::string_view server);

/// Checks that `result`, scanned JSON text, answers such a question. Errors: malformed, with what
/// is expected.
expected<void> check_client_result(std::string_view method, std::string_view result);

/// The error object by which a client answered instead: unavailable where it can't be asked that
/// after all, else denied.
error question_refused(std::string_view method, std::string_view error);

/// One question in a result.
struct input_request {
  std::string key;
  std::string method;
  std::string params; ///< JSON object
};

/// The result that asks the client to come back with answers and with `state`.
std::string input_required_result(const std::vector<input_request>& questions,
                                  std::string_view state);

/// What a client came back with, or sent along at once.
struct input_responses {
  std::string state;                                       ///< empty: none
  std::map<std::string, std::string, std::less<>> answers; ///< by key, JSON objects
};

/// Reads `requestState` and `inputResponses` of a request. Refuses (-32602) what is no string, or
/// no object of objects.
tl::expected<input_responses, rpc_refusal> read_input_responses(const mcp_request& request);

/// Tells a call of a tool from another: equal for the same tool and the same arguments (a scanned
/// JSON object or empty), however these are written.
std::size_t call_digest(std::string_view tool, std::string_view arguments);

} // namespace bulkhead
