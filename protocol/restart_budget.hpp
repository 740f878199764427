#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>

namespace bulkhead {

/// When a server that failed may be started again: after 100 ms, doubling to 30 s, five restarts in
/// ten minutes. A failure after a good run of at least 30 s starts the doubling afresh.
class restart_budget {
public:
  using clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds first_pause{100};
  static constexpr std::chrono::milliseconds longest_pause{30'000};
  static constexpr std::chrono::minutes window{10};
  static constexpr std::size_t restarts = 5;
  static constexpr std::chrono::seconds good_run{30};

  /// A start failed, or the server ended on its own after running for `ran`.
  void failed(clock::time_point now, clock::duration ran) {
    pause_ = ran >= good_run || pause_ == clock::duration::zero()
                 ? clock::duration{first_pause}
                 : std::min<clock::duration>(2 * pause_, longest_pause);
    failures_.push_back(now);
    if (failures_.size() > restarts + 1) {
      failures_.pop_front();
    }
  }

  /// Are all restarts of the present window used up?
  bool used_up(clock::time_point now) const { return now < window_end(); }

  /// When a server that used up its restarts may be started again.
  clock::time_point window_end() const {
    return failures_.size() > restarts ? failures_.front() + window : clock::time_point::min();
  }

  /// The earliest next start, the window aside.
  clock::time_point next_start() const {
    return failures_.empty() ? clock::time_point::min() : failures_.back() + pause_;
  }

  std::size_t failures() const { return failures_.size(); }

private:
  std::deque<clock::time_point> failures_; ///< the latest six at most
  clock::duration pause_ = clock::duration::zero();
};

} // namespace bulkhead
