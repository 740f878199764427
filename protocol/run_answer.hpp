#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/limits.hpp"
#include "protocol/output_capture.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

/// How a run ended, as clients see it.
enum class run_status : std::uint8_t {
  success,
  error,
  timeout,
  out_of_memory,
  cancelled,
  validation_error,
  unavailable,
  session_lost,
};

std::string_view to_string(run_status status);

/// All that a run left behind.
struct run_answer {
  run_status status = run_status::success;
  std::optional<std::int32_t> exit_code;
  captured_stream out;
  captured_stream err;
  std::optional<std::string> result_repr;
  std::optional<std::string> result_json;
  std::optional<guest_exception> exception;
  /// Why there is no ordinary end: shown to the client for every status but success.
  std::optional<error> failure;
  std::vector<std::string> servers;
  std::string session; ///< the handle under which the interpreter goes on; empty: it doesn't
  std::uint64_t duration_ms = 0;
  friend bool operator==(const run_answer&, const run_answer&) = default;
};

enum class output_mode : std::uint8_t { compact, toon, json };

/// The run as an MCP CallToolResult, JSON text in one line: `content` with one text block rendered
/// in `mode`, `structuredContent` as `render_structured` gives it, `isError` unless the status is
/// success.
///
/// compact: stdout as it is; then, where there is such, `[stderr]` and stderr, `=> ` and the last
/// expression's value, the traceback, and in brackets why the run didn't succeed and the session's
/// handle.
/// toon, json: the structured content in that notation.
///
/// The text block and the structured content together show at most `limits::answer_total` bytes
/// (server names, which the configuration bounds, are never cut). What is over gives way in this
/// order: a result's JSON value to its repr, long tracebacks and messages, the streams; each cut is
/// marked and counted.
std::string render_call_result(const run_answer& answer, output_mode mode,
                               const limits& bounds = {});

/// The structured content alone, JSON text: {status, exitCode, stdout, stderr, result, error,
/// servers, session, durationMs, truncated}, empty fields dropped. `result` is the value if there is one as
/// JSON, else its repr as a string; `error` is {code, message} of a failure and {type, traceback}
/// of an exception, with the exception's message if there is no failure; `truncated` has
/// {totalBytes, omittedBytes} of each of stdout, stderr and result of which bytes are left out. At
/// most half of `limits::answer_total` bytes.
std::string render_structured(const run_answer& answer, const limits& bounds = {});

} // namespace bulkhead
