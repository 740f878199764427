#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// The admission desk with the timer it sends itself.
using admission_impl_actor = admission_actor::extend<
    /// The deadline of the waiting request with this number passes.
    caf::reacts_to<tick_atom, std::uint64_t>>;

/// Tickets for runs: so many at once, a bounded queue in order of arrival, refusal beyond.
struct admission_state {
  explicit admission_state(admission_impl_actor::pointer self);
  admission_impl_actor::behavior_type make_behavior();

  struct request {
    std::uint64_t number = 0;
    caf::strong_actor_ptr holder;
    caf::typed_response_promise<std::uint64_t> promise;
  };

  caf::result<std::uint64_t> admit(deadline due);
  void grant(request& to);
  void release(std::uint64_t ticket);
  void holder_died(const caf::actor_addr& holder);
  bool known(const caf::actor_addr& holder) const;
  void forget(const caf::actor_addr& holder);
  void admit_next();

  admission_impl_actor::pointer self;
  environment_ptr env;
  std::uint64_t last_number = 0;
  std::map<std::uint64_t, caf::actor_addr> tickets; ///< by ticket: its holder
  std::deque<request> waiting;

  static inline const char* name = "admission";
};

admission_impl_actor::behavior_type
admission(admission_impl_actor::stateful_pointer<admission_state> self, environment_ptr env);

} // namespace bulkhead
