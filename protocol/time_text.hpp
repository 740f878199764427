#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// "90s", "30m", "2h", "7d" or "2w"; nothing for any other text.
std::optional<std::chrono::seconds> parse_span(std::string_view text);

/// 2026-11-30, 2026-11-30T17:05 or 2026-11-30T17:05:10, with or without a Z at the end, UTC;
/// nothing for any other text.
std::optional<std::chrono::sys_seconds> parse_moment(std::string_view text);

/// 2026-11-30T17:05:10Z.
std::string moment_text(std::chrono::sys_seconds moment);

} // namespace bulkhead
