// Keywords for numbers and texts.
#include "protocol/json_schema_checker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace bulkhead::schema {

namespace {

/// Bytes of a text that are looked at for a step.
constexpr std::size_t bytes_a_step = 256;

bool is_multiple(const json& value, const json& of) {
  if (value.is_number_integer() && of.is_number_integer() && of > 0) {
    auto step = of.get<std::uint64_t>();
    auto number = value.get<std::uint64_t>();
    // Of a negative number, its distance from zero.
    return (value.is_number_unsigned() || value >= 0 ? number : 0 - number) % step == 0;
  }
  // What people mean by 0.07 and 0.01, which no double holds exactly.
  auto times = value.get<double>() / of.get<double>();
  return std::isfinite(times) &&
         std::abs(times - std::round(times)) <= 1e-9 * std::max(1.0, std::abs(times));
}

template <class Fits>
bool check_number(checker& c, const frame& f, const char* what, Fits fits) {
  return !f.argument.is_number() || !f.value.is_number() || fits(f.value, f.argument) ||
         c.complain(fmt::format("expected a number {} {}, got {}", what, shown_value(f.argument),
                                shown_value(f.value)));
}

std::size_t characters(checker& c, const json& text) {
  const auto& bytes = text.get_ref<const std::string&>();
  c.spend(bytes.size() / bytes_a_step);
  return static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

} // namespace

bool check_size(checker& c, const frame& f, std::size_t size, const char* what, const char* of,
                bool (*fits)(double, double)) {
  return !f.argument.is_number() || fits(static_cast<double>(size), f.argument.get<double>()) ||
         c.complain(
             fmt::format("expected {} {} {}, got {}", what, shown_value(f.argument), of, size));
}

bool check_maximum(checker& c, const frame& f) {
  return check_number(c, f, "of at most", [](const json& a, const json& b) { return a <= b; });
}
bool check_minimum(checker& c, const frame& f) {
  return check_number(c, f, "of at least", [](const json& a, const json& b) { return a >= b; });
}
bool check_exclusive_maximum(checker& c, const frame& f) {
  return check_number(c, f, "below", [](const json& a, const json& b) { return a < b; });
}
bool check_exclusive_minimum(checker& c, const frame& f) {
  return check_number(c, f, "above", [](const json& a, const json& b) { return a > b; });
}
bool check_multiple_of(checker& c, const frame& f) {
  return check_number(c, f, "that is a multiple of", is_multiple);
}

bool no_more(double size, double bound) {
  return size <= bound;
}
bool no_less(double size, double bound) {
  return size >= bound;
}

bool check_max_length(checker& c, const frame& f) {
  return !f.value.is_string() ||
         check_size(c, f, characters(c, f.value), "at most", "characters", no_more);
}
bool check_min_length(checker& c, const frame& f) {
  return !f.value.is_string() ||
         check_size(c, f, characters(c, f.value), "at least", "characters", no_less);
}

bool matches(checker& c, const std::string& pattern, const std::string& text) {
  auto found = c.of().patterns.find(pattern);
  return found == c.of().patterns.end() || found->second == nullptr ||
         !c.spend(1 + text.size() / bytes_a_step) || RE2::PartialMatch(text, *found->second);
}

bool check_pattern(checker& c, const frame& f) {
  return !f.argument.is_string() || !f.value.is_string() ||
         matches(c, f.argument.get_ref<const std::string&>(),
                 f.value.get_ref<const std::string&>()) ||
         c.complain(fmt::format("expected a text that matches {}, got {}", shown_value(f.argument),
                                shown_value(f.value)));
}

} // namespace bulkhead::schema
