#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "actors/memory_budget.hpp"

namespace bulkhead {

/// Bytes on their way to a child. At most `window` bytes are handed out before earlier ones are
/// acknowledged as written; what waits is charged to the memory budget.
class outbox {
public:
  outbox(std::size_t window, std::shared_ptr<memory_budget> budget)
      : window_{window}, budget_{std::move(budget)} {}

  /// What is queued from now on is charged to `budget`.
  void charge_to(std::shared_ptr<memory_budget> budget) { budget_ = std::move(budget); }

  /// Queues bytes; false, and nothing is queued, when the budget refuses them.
  bool push(std::string bytes) {
    memory_budget::share share;
    if (!budget_->take(bytes.size(), share)) {
      return false;
    }
    waiting_.emplace_back(std::move(bytes), std::move(share));
    return true;
  }

  /// Hands what the window allows to `write(std::string)`. A message larger than the window goes
  /// out alone.
  template <class Write>
  void pump(Write write) {
    while (!waiting_.empty() &&
           (in_flight_ == 0 || in_flight_ + waiting_.front().first.size() <= window_)) {
      auto [bytes, share] = std::move(waiting_.front());
      waiting_.pop_front();
      in_flight_ += bytes.size();
      in_flight_shares_.emplace_back(bytes.size(), std::move(share));
      write(std::move(bytes));
    }
  }

  /// `bytes` of what was handed out have been written.
  void acknowledge(std::uint64_t bytes) {
    in_flight_ -= std::min<std::uint64_t>(bytes, in_flight_);
    while (bytes > 0 && !in_flight_shares_.empty()) {
      auto& [left, share] = in_flight_shares_.front();
      auto step = std::min(left, bytes);
      left -= step;
      bytes -= step;
      if (left > 0) {
        break;
      }
      in_flight_shares_.pop_front();
    }
  }

  /// Messages queued or handed out and not yet written.
  std::size_t entries() const { return waiting_.size() + in_flight_shares_.size(); }

  bool empty() const { return waiting_.empty() && in_flight_ == 0; }

private:
  std::size_t window_;
  std::shared_ptr<memory_budget> budget_;
  std::deque<std::pair<std::string, memory_budget::share>> waiting_;
  std::uint64_t in_flight_ = 0;
  std::deque<std::pair<std::uint64_t, memory_budget::share>> in_flight_shares_;
};

} // namespace bulkhead
