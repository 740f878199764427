#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/ledger_record.hpp"

namespace bulkhead {

/// Milliseconds since 1970 of "90s", "30m", "2h", "7d" or "2w" before `now` (the same unit), or of
/// a date: 2026-11-30, 2026-11-30T17:05, 2026-11-30T17:05:10, UTC. Errors: invalid_argument.
expected<std::int64_t> parse_since(std::string_view text, std::int64_t now);

/// 2026-11-30T17:05:10.123Z.
std::string time_text(std::int64_t milliseconds);

enum class ledger_format : std::uint8_t { text, json, csv };

/// What comes before the first record, if anything: a line of headings.
std::string ledger_head(bool calls, ledger_format format);

/// A record: a line, or a JSON object without a line end. Names that come from servers and code are
/// harmless to a terminal, and to a spreadsheet.
std::string to_text(const ledger_run& run, ledger_format format);
std::string to_text(const ledger_call& call, ledger_format format);

} // namespace bulkhead
