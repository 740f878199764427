#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// What one tenant may have of the runs.
struct run_quota {
  std::size_t runs = 8;   ///< at once
  std::size_t queue = 64; ///< that wait for their turn
  /// CPU-seconds within a day (UTC), each run counted with its time times the CPUs that it may use;
  /// nothing: as much as it likes.
  std::optional<double> day;
  double cpus = 1.0; ///< what a run may use
};

/// How many runs go on and wait: written by the admission desk, read by who would rather refuse a
/// request at once than let it come to the desk. Thread-safe.
class admission_load {
public:
  void set(const std::string& tenant, std::size_t running, std::size_t waiting) {
    std::lock_guard guard{mutex_};
    auto& of = tenants_[tenant];
    total_ += running + waiting - of.running - of.waiting;
    of = {running, waiting};
  }

  std::size_t waiting(const std::string& tenant) const {
    std::lock_guard guard{mutex_};
    auto found = tenants_.find(tenant);
    return found == tenants_.end() ? 0 : found->second.waiting;
  }

  /// Those that go on and those that wait, of all tenants.
  std::size_t total() const {
    std::lock_guard guard{mutex_};
    return total_;
  }

private:
  struct load {
    std::size_t running = 0;
    std::size_t waiting = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, load> tenants_;
  std::size_t total_ = 0;
};

/// By what the desk works. The functions are asked each time, so that what they tell may change.
struct admission_rules {
  std::function<std::size_t()> runs; ///< at once, of all tenants together
  std::function<run_quota(const std::string& tenant)> quota_of;
  std::function<std::chrono::system_clock::time_point()> wall_clock;
  std::shared_ptr<admission_load> load = std::make_shared<admission_load>();
};

/// The rules of a process that serves one user.
admission_rules admission_for_one(const environment_ptr& env);

/// The rules for turns to boot, which are given like those to run: a boot keeps two processors busy
/// (the engine's command line is no single thread), so that more at once would only take longer
/// each, and a tenant that boots many would take all processors from the others.
admission_rules rules_for_boots();

/// The admission desk with the timer it sends itself.
using admission_impl_actor = admission_actor::extend<
    /// The deadline of the waiting request with this number passes.
    caf::reacts_to<tick_atom, std::uint64_t>>;

/// Tickets for runs: so many at once, for each tenant a bounded queue in order of arrival, refusal
/// beyond. Of the tenants that wait, the one with the fewest runs is next, and among equals the one
/// whose turn was longest ago: however many runs one of them asks for, another's first comes next.
struct admission_state {
  explicit admission_state(admission_impl_actor::pointer self);
  admission_impl_actor::behavior_type make_behavior();

  struct request {
    std::uint64_t number = 0;
    caf::strong_actor_ptr holder;
    caf::typed_response_promise<std::uint64_t> promise;
  };

  struct ticket {
    std::string tenant;
    caf::actor_addr holder;
    std::chrono::steady_clock::time_point since;
  };

  struct tenant {
    std::deque<request> waiting;
    std::size_t running = 0;
    std::uint64_t last_turn = 0; ///< the number of the turn that was its last
    std::int64_t day = 0;        ///< since 1970, UTC, that `used` is of
    double used = 0;             ///< CPU-seconds on that day
  };
  using tenants_map = std::map<std::string, tenant>;

  caf::result<std::uint64_t> admit(const std::string& name, deadline due);
  std::optional<error> refuse(const std::string& name, tenant& of) const;
  void grant(const std::string& name, tenant& of, request& to);
  void release(std::uint64_t ticket);
  void end(std::map<std::uint64_t, ticket>::iterator which);
  void holder_died(const caf::actor_addr& holder);
  void late(std::uint64_t number);
  bool known(const caf::actor_addr& holder) const;
  void forget(const caf::actor_addr& holder);
  void admit_next();
  tenants_map::iterator next_tenant();
  void tell_load(const std::string& name, const tenant& of) const;
  void begin_day(tenant& of) const;

  admission_impl_actor::pointer self;
  admission_rules rules;
  std::uint64_t last_number = 0;
  std::uint64_t last_turn = 0;
  std::map<std::uint64_t, ticket> tickets; ///< by number
  tenants_map tenants;

  static inline const char* name = "admission";
};

admission_impl_actor::behavior_type
admission(admission_impl_actor::stateful_pointer<admission_state> self, admission_rules rules);

} // namespace bulkhead
