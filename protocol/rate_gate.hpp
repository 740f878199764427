#pragma once

#include <algorithm>
#include <chrono>

namespace bulkhead {

/// Lets events through at a rate: `burst` at once, and one more each `interval`.
class rate_gate {
public:
  using clock = std::chrono::steady_clock;

  rate_gate(double burst, clock::duration interval)
      : burst_{burst}, interval_{interval}, left_{burst} {}

  /// May one more pass at `now`?
  bool pass(clock::time_point now) {
    if (last_ != clock::time_point{}) {
      left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - last_) / interval_);
    }
    last_ = now;
    if (left_ < 1) {
      return false;
    }
    left_ -= 1;
    return true;
  }

private:
  double burst_;
  clock::duration interval_;
  double left_;
  clock::time_point last_{};
};

} // namespace bulkhead
