#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace bulkhead {

/// What a line of the log is about, besides its text, for machines; empty: of no such thing.
struct log_ids {
  std::string_view run{};
  std::string_view request{}; ///< the id of the client's request
  std::string_view trace{};   ///< 32 hex digits
};

/// A line of the log.
struct log_line {
  std::chrono::system_clock::time_point time;
  std::string_view level;
  std::string_view tenant; ///< empty: the whole process
  std::string_view message;
  log_ids ids{};
};

/// The line as one JSON object, with its newline: `time` (RFC 3339, UTC, milliseconds), `level`,
/// `message`, and `tenant`, `run`, `request` and `trace_id` where there is one. ASCII alone but for
/// what is printable; bytes that are no UTF-8 become U+FFFD.
std::string encode_log_line(const log_line& line);

} // namespace bulkhead
