#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "protocol/settings.hpp"

namespace bulkhead {

/// Settings that may become others while actors work by them: whoever begins something looks at
/// those that hold then. Thread-safe once it is shared; copies are the same settings.
class live_settings {
public:
  explicit live_settings(settings first = {}) { replace(std::move(first)); }

  /// What holds now; lives as long as these settings do, also after it was replaced.
  const settings& operator*() const { return *state_->now.load(std::memory_order_acquire); }
  const settings* operator->() const { return &**this; }

  /// For who makes them, before anybody else has them.
  settings* operator->() { return &state_->all.back(); }

  /// Earlier ones are kept for who still reads them: they are small, and changes are rare.
  void replace(settings next) const {
    std::lock_guard guard{state_->mutex};
    state_->all.push_back(std::move(next));
    state_->now.store(&state_->all.back(), std::memory_order_release);
  }

private:
  struct state {
    std::mutex mutex;
    std::deque<settings> all;
    std::atomic<const settings*> now = nullptr;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

} // namespace bulkhead
