#include "protocol/time_text.hpp"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>

namespace bulkhead {

namespace {

std::int64_t seconds_of(char unit) {
  switch (unit) {
  case 's':
    return 1;
  case 'm':
    return 60;
  case 'h':
    return 3'600;
  case 'd':
    return 86'400;
  case 'w':
    return 604'800;
  default:
    return 0;
  }
}

} // namespace

std::optional<std::chrono::seconds> parse_span(std::string_view text) {
  std::int64_t count = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  bool number = !text.empty() && failure == std::errc{} && end == text.data() + text.size() - 1;
  auto unit = number ? seconds_of(text.back()) : 0;
  bool usable = unit > 0 && count >= 0 && count <= 100'000'000;
  return usable ? std::optional(std::chrono::seconds{count * unit}) : std::nullopt;
}

std::optional<std::chrono::sys_seconds> parse_moment(std::string_view text) {
  std::tm time{};
  int length = 0;
  std::string date{text.substr(0, text.size() - (text.ends_with('Z') ? 1 : 0))};
  auto whole = [&] { return length == static_cast<int>(date.size()); };
  const auto* input = date.c_str();
  bool read =
      (std::sscanf(input, "%4d-%2d-%2d%n", &time.tm_year, &time.tm_mon, &time.tm_mday, &length) ==
           3 &&
       whole()) ||
      (std::sscanf(input, "%4d-%2d-%2dT%2d:%2d%n", &time.tm_year, &time.tm_mon, &time.tm_mday,
                   &time.tm_hour, &time.tm_min, &length) == 5 &&
       whole()) ||
      (std::sscanf(input, "%4d-%2d-%2dT%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon, &time.tm_mday,
                   &time.tm_hour, &time.tm_min, &time.tm_sec, &length) == 6 &&
       whole());
  std::chrono::year_month_day day{std::chrono::year{time.tm_year},
                                  std::chrono::month{static_cast<unsigned>(time.tm_mon)},
                                  std::chrono::day{static_cast<unsigned>(time.tm_mday)}};
  if (!read || !day.ok() || time.tm_hour < 0 || time.tm_hour > 23 || time.tm_min < 0 ||
      time.tm_min > 59 || time.tm_sec < 0 || time.tm_sec > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days{day} + std::chrono::hours{time.tm_hour} +
         std::chrono::minutes{time.tm_min} + std::chrono::seconds{time.tm_sec};
}

std::string moment_text(std::chrono::sys_seconds moment) {
  // Not by way of the system's clock, whose nanoseconds end in 2262.
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(moment.time_since_epoch().count())));
}

} // namespace bulkhead
