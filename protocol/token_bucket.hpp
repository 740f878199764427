#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace bulkhead {

/// So many things a second on average, and a burst of them at once. Not thread-safe.
class token_bucket {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::duration<double>;

  /// `rate` a second, above 0; `burst` at least 1. It begins full.
  token_bucket(double rate, double burst, time_point now)
      : rate_{rate}, burst_{burst}, left_{burst}, since_{now} {}

  /// Another rate and burst from now on; what was used stays used.
  void change(double rate, double burst, time_point now) {
    fill(now);
    rate_ = rate;
    burst_ = burst;
    left_ = std::min(left_, burst_);
  }

  /// Takes one; or tells after what time there will be one again.
  std::optional<seconds> take(time_point now) {
    fill(now);
    if (left_ >= 1) {
      left_ -= 1;
      return std::nullopt;
    }
    return seconds{(1 - left_) / rate_};
  }

private:
  void fill(time_point now) {
    left_ = std::min(burst_, left_ + rate_ * seconds{now - since_}.count());
    since_ = now;
  }

  double rate_;
  double burst_;
  double left_;
  time_point since_;
};

} // namespace bulkhead
