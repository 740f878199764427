#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// Booted sandboxes that wait for their one run. Whoever starts a run takes one without waiting for
/// anybody; `sandbox_pool` puts them here. Thread-safe.
class sandbox_shelf {
public:
  /// The sandbox that has waited longest, or null.
  sandbox_actor take();

  void put(sandbox_actor ready);

  /// Takes one certain sandbox away; false when it isn't here any more.
  bool remove(const caf::actor_addr& which);

  std::vector<sandbox_actor> all() const;

  std::size_t size() const;

private:
  mutable std::mutex mutex_;
  std::deque<sandbox_actor> waiting_;
};

/// The pool with what it tells itself.
using sandbox_pool_impl_actor = sandbox_pool_actor::extend<
    /// Looks again at what the pool should hold.
    caf::reacts_to<tick_atom>>;

/// What a pool works with.
struct sandbox_pool_context {
  environment_ptr env;
  std::shared_ptr<sandbox_shelf> shelf;
  std::function<container_runtime_actor()> runtime; ///< the current one: it may be started again
  /// Makes a sandbox that has yet to boot.
  std::function<sandbox_actor()> make_sandbox;
};

/// Keeps the shelf filled: nothing before the first run (unless asked to), then the floor, more
/// while runs find the shelf empty, less again when they don't, and nothing after a long time
/// without any. A sandbox that died, or that was made from what has changed since, is replaced. One
/// boots at a time, so that a burst of runs keeps the processors.
struct sandbox_pool_state {
  explicit sandbox_pool_state(sandbox_pool_impl_actor::pointer self);
  sandbox_pool_impl_actor::behavior_type make_behavior();

  using time_point = std::chrono::steady_clock::time_point;

  void start();
  void taken(bool from_shelf);
  void refill();
  void boot_one();
  void booted(const sandbox_actor& which, std::string stamp);
  void look_around();
  void shrink();
  void compare(const std::string& stamp);
  void died_waiting();
  void drop(const sandbox_actor& which);

  sandbox_pool_impl_actor::pointer self;
  sandbox_pool_context context;
  /// What each sandbox on the shelf was made from (see stamp_atom); taken ones leave at the next
  /// look.
  std::map<caf::actor_addr, std::string> stamps;
  std::size_t wanted = 0; ///< how many should wait on the shelf
  bool booting = false;
  bool failing = false; ///< boots fail, or what was booted dies: wait for the next run to try again
  int deaths = 0;       ///< of sandboxes that waited, since the last run
  bool looking = false; ///< a tick is on its way
  time_point last_run{};
  time_point last_miss{};

  static inline const char* name = "sandbox-pool";
};

sandbox_pool_impl_actor::behavior_type
sandbox_pool(sandbox_pool_impl_actor::stateful_pointer<sandbox_pool_state> self,
             sandbox_pool_context context);

} // namespace bulkhead
