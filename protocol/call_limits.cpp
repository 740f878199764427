#include "protocol/call_limits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

std::string told(const policy_limit& limit, std::string_view what, std::string_view key) {
  return fmt::format("policy allows {} {}{} (\"{}\"{}{})", limit.most,
                     limit.most == 1 ? "call" : "calls", what, key,
                     limit.file.empty() ? "" : " in ", limit.file);
}

const policy_limit* strictest(const std::vector<policy_limit>& limits) {
  auto less = [](const auto& a, const auto& b) { return a.most < b.most; };
  auto found = std::min_element(limits.begin(), limits.end(), less);
  return found != limits.end() ? &*found : nullptr;
}

} // namespace

bool call_rates::take(const std::string& owner, std::uint32_t most, clock::time_point now) {
  std::lock_guard guard{mutex_};
  auto& calls = calls_[owner];
  while (!calls.empty() && calls.front() <= now - 60s) {
    calls.pop_front();
  }
  if (calls.size() >= most) {
    return false;
  }
  calls.push_back(now);
  return true;
}

std::optional<std::string> call_counts::take(const policy& rules, call_rates& rates,
                                             const std::string& owner, std::string_view server,
                                             std::string_view tool,
                                             call_rates::clock::time_point now) {
  by_pattern_.resize(rules.calls_per_tool.size());
  if (const auto* limit = strictest(rules.calls_per_run); limit && all_ >= limit->most) {
    return told(*limit, " a run", "callsPerRun");
  }
  for (std::size_t i = 0; i < by_pattern_.size(); ++i) {
    const auto& limit = rules.calls_per_tool[i];
    if (names_tool(limit.pattern, server, tool) && by_pattern_[i] >= limit.most) {
      return told(limit, fmt::format(" of \"{}\" a run", limit.pattern), "perTool");
    }
  }
  // The last one, since it counts at once.
  if (const auto* limit = strictest(rules.calls_per_minute);
      limit && !rates.take(owner, limit->most, now)) {
    return told(*limit, " a minute", "callsPerMinute");
  }
  ++all_;
  for (std::size_t i = 0; i < by_pattern_.size(); ++i) {
    by_pattern_[i] += names_tool(rules.calls_per_tool[i].pattern, server, tool) ? 1 : 0;
  }
  return std::nullopt;
}

} // namespace bulkhead
