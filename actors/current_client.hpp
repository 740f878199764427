#pragma once

#include <mutex>

#include "protocol/client_abilities.hpp"

namespace bulkhead {

/// What the one client of a process can be asked, as it said last; nothing before it did, and
/// nothing for ever where a process serves several. Thread-safe.
class current_client {
public:
  void set(const client_abilities& abilities) {
    std::lock_guard guard{mutex_};
    abilities_ = abilities;
  }

  client_abilities get() const {
    std::lock_guard guard{mutex_};
    return abilities_;
  }

private:
  mutable std::mutex mutex_;
  client_abilities abilities_;
};

} // namespace bulkhead
