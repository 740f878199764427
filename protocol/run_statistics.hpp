#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// How the runs of one minute went.
struct run_minute {
  std::int64_t at = 0;                         ///< its beginning: milliseconds since 1970
  std::map<std::string, std::uint64_t> counts; ///< by outcome
  std::uint64_t median_ms = 0;                 ///< of their durations, to within a tenth
  std::uint64_t high_ms = 0;                   ///< 95 in 100 took no longer, to within a tenth
  friend bool operator==(const run_minute&, const run_minute&) = default;
};

/// Counts the runs of the last hour by minute, in memory that doesn't grow with their number. Not
/// thread-safe.
class run_statistics {
public:
  /// A run ended at that time (milliseconds since 1970). One that ended in an hour that is over, by
  /// what was told before, isn't counted.
  void add(std::int64_t at, std::string_view outcome, std::uint64_t duration_ms);

  /// The minutes of the hour before `now` in which a run ended, the oldest first.
  std::vector<run_minute> last_hour(std::int64_t now) const;

private:
  static constexpr std::size_t minutes = 60;
  /// Four of them for each doubling of the duration, from 1 ms to more than a day.
  static constexpr std::size_t steps = 108;

  struct bucket {
    std::int64_t minute = -1; ///< since 1970; -1: never used
    std::map<std::string, std::uint64_t> counts;
    std::array<std::uint32_t, steps> durations{};
  };

  static std::size_t step_of(std::uint64_t duration_ms);
  static std::uint64_t quantile(const bucket& of, double part);

  std::array<bucket, minutes> buckets_{};
};

} // namespace bulkhead
