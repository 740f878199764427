#include "protocol/json_members.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace bulkhead {

std::string_view json_members::json(std::string_view key) const {
  const auto value = object_.find(key);
  return value == "null" ? std::string_view{} : value;
}

void json_members::reject(errc code, std::string_view key, std::string_view reason) {
  if (sound()) {
    error_ = {code, fmt::format("{}: \"{}\" {}", what_, key, reason)};
  }
}

std::optional<std::string> json_members::optional_text(std::string_view key,
                                                       std::size_t max_bytes) {
  const auto value = json(key);
  if (value.empty()) {
    return std::nullopt;
  }
  if (!is_json_string(value)) {
    reject(wrong_, key, "must be a string");
    return std::nullopt;
  }
  // No escape takes more than six bytes for one: a longer token needn't be decoded to be refused.
  constexpr std::size_t longest_escape = 6;
  const bool hopeless = value.size() / longest_escape > max_bytes + 1;
  auto decoded = hopeless ? std::string{} : decode_json_string(value);
  if (hopeless || decoded.size() > max_bytes) {
    reject(errc::too_large, key, fmt::format("is over the limit of {} bytes", max_bytes));
    return std::nullopt;
  }
  return decoded;
}

std::string json_members::text(std::string_view key, std::size_t max_bytes) {
  auto value = optional_text(key, max_bytes);
  if (!value || value->empty()) {
    reject(wrong_, key, "must be a string that is not empty");
    return {};
  }
  return std::move(*value);
}

std::optional<std::uint64_t> json_members::optional_number(std::string_view key, std::uint64_t low,
                                                           std::uint64_t high) {
  const auto value = json(key);
  if (value.empty()) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto* end = value.data() + value.size();
  const auto [stopped, problem] = std::from_chars(value.data(), end, number);
  if (problem != std::errc{} || stopped != end || number < low || number > high) {
    reject(wrong_, key, fmt::format("must be an integer from {} to {}", low, high));
    return std::nullopt;
  }
  return number;
}

std::uint64_t json_members::number(std::string_view key, std::uint64_t low, std::uint64_t high) {
  const auto value = optional_number(key, low, high);
  if (!value) {
    reject(wrong_, key, fmt::format("must be an integer from {} to {}", low, high));
  }
  return value.value_or(low);
}

std::int32_t json_members::clamped(std::string_view key, std::int32_t low, std::int32_t high) {
  const auto value = json(key);
  if (!is_json_integer(value)) {
    reject(wrong_, key, "must be an integer");
    return low;
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) {
    return value.front() == '-' ? low : high;
  }
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, low, high));
}

std::string_view json_members::optional_object(std::string_view key) {
  const auto value = json(key);
  if (!value.empty() && !is_json_object(value)) {
    reject(wrong_, key, "must be an object");
    return {};
  }
  return value;
}

} // namespace bulkhead
