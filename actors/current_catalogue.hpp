#pragma once

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "actors/interfaces.hpp"

namespace bulkhead {

/// What is configured now. Whoever begins something takes it from here; a session is told when it
/// has become another. Thread-safe.
class current_catalogue {
public:
  explicit current_catalogue(catalogue_ptr first) : catalogue_{std::move(first)} {}

  catalogue_ptr get() const {
    std::lock_guard guard{mutex_};
    return catalogue_;
  }

  /// Every session that asked for it and still lives is told.
  void set(catalogue_ptr next) {
    // A session that ends with the last handle comes back to `forget`: not under the lock.
    std::vector<mcp_session_actor> sessions;
    {
      std::lock_guard guard{mutex_};
      catalogue_ = std::move(next);
      for (const auto& listener : listeners_) {
        sessions.push_back(caf::actor_cast<mcp_session_actor>(listener));
      }
    }
    for (const auto& session : sessions) {
      if (session) {
        caf::anon_send(session, catalogue_atom::value);
      }
    }
  }

  /// The session gets `catalogue_atom` from now on, until it ends.
  void tell(const caf::actor_addr& session) {
    std::lock_guard guard{mutex_};
    listeners_.insert(session);
  }

  void forget(const caf::actor_addr& session) {
    std::lock_guard guard{mutex_};
    listeners_.erase(session);
  }

private:
  mutable std::mutex mutex_;
  catalogue_ptr catalogue_;
  std::set<caf::actor_addr> listeners_;
};

} // namespace bulkhead
