#include "protocol/run_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace bulkhead {

namespace {

constexpr std::int64_t minute_ms = 60'000;
constexpr double steps_a_doubling = 4;

} // namespace

std::size_t run_statistics::step_of(std::uint64_t duration_ms) {
  auto step = std::floor(steps_a_doubling * std::log2(static_cast<double>(duration_ms) + 1));
  return std::min(static_cast<std::size_t>(step), steps - 1);
}

void run_statistics::add(std::int64_t at, std::string_view outcome, std::uint64_t duration_ms) {
  auto minute = std::max<std::int64_t>(at, 0) / minute_ms;
  auto& into = buckets_[static_cast<std::size_t>(minute) % minutes];
  if (into.minute > minute) {
    return;
  }
  if (into.minute < minute) {
    into = bucket{};
    into.minute = minute;
  }
  ++into.counts[std::string{outcome}];
  ++into.durations[step_of(duration_ms)];
}

/// The middle of the step in which that part of the durations is reached.
std::uint64_t run_statistics::quantile(const bucket& of, double part) {
  std::uint64_t all = 0;
  for (auto count : of.durations) {
    all += count;
  }
  auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(all))));
  std::uint64_t passed = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    passed += of.durations[step];
    if (passed >= wanted) {
      auto middle = (static_cast<double>(step) + 0.5) / steps_a_doubling;
      return static_cast<std::uint64_t>(std::llround(std::exp2(middle) - 1));
    }
  }
  return 0;
}

std::vector<run_minute> run_statistics::last_hour(std::int64_t now) const {
  auto newest = now / minute_ms;
  std::vector<run_minute> result;
  for (const auto& each : buckets_) {
    if (each.minute >= 0 && each.minute <= newest &&
        each.minute > newest - static_cast<std::int64_t>(minutes)) {
      result.push_back(
          {each.minute * minute_ms, each.counts, quantile(each, 0.5), quantile(each, 0.95)});
    }
  }
  std::sort(result.begin(), result.end(),
            [](const auto& one, const auto& other) { return one.at < other.at; });
  return result;
}

} // namespace bulkhead
