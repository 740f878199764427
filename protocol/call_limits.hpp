#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/policy.hpp"

namespace bulkhead {

/// The calls of the last minute, by whose they are. Those of all runs count together: else many
/// short runs would be a way around a limit per minute. Thread-safe.
class call_rates {
public:
  using clock = std::chrono::steady_clock;

  /// Counts a call at `now` unless `most` of the minute before were counted; false if so.
  bool take(const std::string& owner, std::uint32_t most, clock::time_point now);

private:
  std::mutex mutex_;
  std::map<std::string, std::deque<clock::time_point>> calls_;
};

/// What one run has used up of its policy's limits.
class call_counts {
public:
  /// Counts a call, unless that is over a limit: then which one, e.g. `policy allows 20 calls a
  /// run ("callsPerRun" in FILE)`. A refused call counts nowhere.
  std::optional<std::string> take(const policy& rules, call_rates& rates, const std::string& owner,
                                  std::string_view server, std::string_view tool,
                                  call_rates::clock::time_point now);

private:
  std::uint64_t all_ = 0;
  std::vector<std::uint64_t> by_pattern_; ///< as the policy's calls_per_tool
};

} // namespace bulkhead
