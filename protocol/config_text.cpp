#include "protocol/config_text.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

/// "line 3, column 7" of a byte of `text`.
std::string position(std::string_view text, std::size_t offset) {
  auto before = text.substr(0, offset);
  auto line_start = before.rfind('\n') + 1; // npos + 1 is 0
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - line_start + 1);
}

/// UTF-16 and UTF-32 start with a byte order mark, or have zeros in what would be ASCII.
bool is_wide_text(std::string_view text) {
  using namespace std::string_view_literals;
  return text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv) ||
         text.substr(0, 4).find('\0') != std::string_view::npos;
}

} // namespace

expected<nlohmann::json> read_config_json(std::string_view raw, const config_text_limits& limits) {
  if (raw.size() > limits.bytes) {
    return fail(errc::too_large,
                fmt::format("has {} bytes, more than the {} allowed", raw.size(), limits.bytes));
  }
  if (is_wide_text(raw)) {
    return fail(errc::malformed, "is no UTF-8 text; save it as UTF-8");
  }
  auto text = strip_json_comments(raw);
  json_fault fault;
  auto scanned = scan_json(text, scan_limits{.bytes = limits.bytes, .nodes = limits.nodes}, &fault);
  if (!scanned) {
    // The place alone: the text around it may hold secrets.
    auto twin = fault.duplicate_key.empty()
                    ? std::string{}
                    : fmt::format(" (\"{}\")", shown_name(fault.duplicate_key));
    return fail(scanned.error().code,
                fmt::format("{}: {}{}", position(text, fault.offset), fault.why, twin));
  }
  if (!scanned->is_object) {
    return fail(errc::malformed, "must hold a JSON object");
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) { // all else that it refuses, the scan did
    return fail(errc::malformed, "holds a number that is too large");
  }
}

} // namespace bulkhead
