#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/artifact.hpp"
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

/// What is kept of a stream outside of the answer.
struct kept_stream {
  std::string uri; ///< empty when nothing is kept
  kept_bytes kept;
  friend bool operator==(const kept_stream&, const kept_stream&) = default;
};

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
  /// Where all of an output is kept that the answer can't show whole.
  kept_stream out_kept;
  kept_stream err_kept;
  std::vector<kept_artifact> artifacts;
  std::vector<lost_artifacts> artifacts_lost;
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
/// Images among the artifacts follow as image blocks, the others, if `links` (revisions from
/// 2025-06-18 on know them), as resource_link blocks; a line each in the compact text.
///
/// The text block and the structured content together show at most `limits::answer_total` bytes
/// (server names, which the configuration bounds, are never cut). What is over gives way in this
/// order: a result's JSON value to its repr, long tracebacks and messages, the streams; each cut is
/// marked and counted.
std::string render_call_result(const run_answer& answer, output_mode mode,
                               const limits& bounds = {}, bool links = true);

/// False when an answer has to cut what was captured of the streams, however little that is, since
/// it has no room for the way it is written: see `render_call_result`.
bool shows_all_captured(const run_answer& answer, output_mode mode, const limits& bounds = {});

/// The structured content alone, JSON text: {status, exitCode, stdout, stderr, result, error,
/// servers, session, durationMs, truncated, artifacts}, empty fields dropped. `result` is the value
/// if there is one as JSON, else its repr as a string; `error` is {code, message} of a failure and
/// {type, traceback} of an exception, with the exception's message if there is no failure;
/// `truncated` has {totalBytes, omittedBytes} of each of stdout, stderr and result of which bytes
/// are left out, with `uri`, where all of a stream can be read; if not all of it is kept,
/// `keptBytes` and `notKept`, the cause. `artifacts` are [{name, mimeType, bytes, uri}]; how many
/// are kept but not told of for want of room, and how many are lost and why, is in
/// `truncated.artifacts`. At most half of `limits::answer_total` bytes.
std::string render_structured(const run_answer& answer, const limits& bounds = {});

} // namespace bulkhead
