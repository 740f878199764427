#include "protocol/setting_values.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "protocol/image_profiles.hpp"
#include "protocol/limits.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

namespace {

constexpr std::uint64_t least_memory = 32 * mebibyte;
constexpr std::uint64_t most_memory = 1024ULL * 1024 * mebibyte;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

} // namespace

std::string shown_value(std::string_view value) {
  constexpr std::size_t longest = 80;
  std::string result;
  for (char c : value.substr(0, longest)) {
    result += is_control(c) ? '?' : c;
  }
  return value.size() > longest ? result + "…" : result;
}

std::optional<double> parse_decimal(std::string_view text) {
  auto plain = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), plain)) {
    return std::nullopt;
  }
  return parse_whole<double>(text);
}

value_kind<std::uint32_t> count_value(std::uint32_t least, std::uint32_t most) {
  return {fmt::format("a whole number from {} to {}", least, most), [=](std::string_view text) {
            auto number = parse_whole<std::uint32_t>(text);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          }};
}

value_kind<double> decimal_value(std::string_view what, double least, double most,
                                 std::string_view example) {
  return {fmt::format("{} from {} to {}, e.g. {}", what, least, most, example),
          [=](std::string_view text) {
            auto number = parse_decimal(text);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          }};
}

value_kind<std::chrono::milliseconds> timeout_value() {
  constexpr double longest_seconds = 86'400;
  return {"seconds from 0.1 to 86400, e.g. 30 or 2.5",
          [](std::string_view text) -> std::optional<std::chrono::milliseconds> {
            auto number = parse_decimal(text);
            if (!number || *number < 0.1 || *number > longest_seconds) {
              return std::nullopt;
            }
            return std::chrono::milliseconds(std::llround(*number * 1000));
          }};
}

value_kind<std::uint64_t> memory_value() {
  return {"a size from 32m to 1t, e.g. 512m or 1g",
          [](std::string_view text) -> std::optional<std::uint64_t> {
            auto size = parse_size(text);
            bool usable = size && *size >= least_memory && *size <= most_memory;
            return usable ? std::optional(*size) : std::nullopt;
          }};
}

value_kind<std::uint32_t> pids_value() {
  return count_value(16, 32'768);
}

value_kind<double> cpus_value() {
  return decimal_value("a number of processors", 0.05, 1024, "1.5");
}

value_kind<std::uint32_t> concurrent_runs_value() {
  return count_value(1, 1024);
}

value_kind<std::uint32_t> sessions_value() {
  return count_value(0, 256);
}

value_kind<std::uint64_t> kept_bytes_value(std::string_view example, std::string_view none) {
  return {fmt::format("a size, e.g. {}, or 0 {}", example, none),
          [](std::string_view text) -> std::optional<std::uint64_t> {
            auto bytes = parse_size(text);
            return bytes ? std::optional(*bytes) : std::nullopt;
          }};
}

value_kind<std::string> image_value() {
  return {"minimal, data or an image reference without spaces, e.g. localhost/x:1",
          [](std::string_view text) -> std::optional<std::string> {
            auto bad = [](char c) { return is_control(c) || c == ' '; };
            if (text.empty() || text.front() == '-' || std::any_of(text.begin(), text.end(), bad)) {
              return std::nullopt;
            }
            const auto* profile = find_image_profile(text);
            return std::string(profile != nullptr ? profile->reference : text);
          }};
}

} // namespace bulkhead
