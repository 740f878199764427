#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace bulkhead {

/// A number that is all of `text`; nothing for any other text, or one that doesn't fit.
template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// Digits with an optional fraction; no sign, exponent, "inf" or "nan".
std::optional<double> parse_decimal(std::string_view text);

/// A kind of value that people write into a variable or a file: what it may be, in words that go on
/// from "expected", and how it is read.
template <class T>
struct value_kind {
  std::string expectation;
  std::function<std::optional<T>(std::string_view text)> parse;
};

value_kind<std::uint32_t> count_value(std::uint32_t least, std::uint32_t most);

/// `what` says what the number is of.
value_kind<double> decimal_value(std::string_view what, double least, double most,
                                 std::string_view example);

/// Seconds from 0.1 to 86400, with a fraction.
value_kind<std::chrono::milliseconds> timeout_value();

/// The memory of a run, in bytes, and how many processes it may have, and processors.
value_kind<std::uint64_t> memory_value();
value_kind<std::uint32_t> pids_value();
value_kind<double> cpus_value();

value_kind<std::uint32_t> concurrent_runs_value();
value_kind<std::uint32_t> sessions_value();

/// Bytes of something that is kept; `none` says what 0 is for, `example` names two sizes.
value_kind<std::uint64_t> kept_bytes_value(std::string_view example, std::string_view none);

/// The name of a profile, which becomes its reference, or an image reference.
value_kind<std::string> image_value();

/// A value as error texts show it: short, and harmless to a terminal.
std::string shown_value(std::string_view value);

} // namespace bulkhead
