#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// What whoever asks for a session gets that isn't there: of another owner, ended, lost and never
/// made are all alike, so that guessing tells nothing.
error no_such_session();

/// The sessions with the timer that they send themselves.
using python_sessions_impl_actor = python_sessions_actor::extend<
    /// Claims that have waited too long are refused.
    caf::reacts_to<tick_atom>>;

/// Which interpreters are kept, whose they are and who runs code in them. An interpreter that
/// nobody uses ends by itself (see sandbox_run::keep); the one unused for longest makes room for a
/// new session.
struct python_sessions_state {
  explicit python_sessions_state(python_sessions_impl_actor::pointer self);
  python_sessions_impl_actor::behavior_type make_behavior();

  using time_point = std::chrono::steady_clock::time_point;

  struct waiting_claim {
    session_claim what;
    caf::strong_actor_ptr holder;
    caf::typed_response_promise<session_lease> promise;
  };

  struct session {
    std::string owner;
    std::vector<std::string> servers;  ///< fixed when it was made
    std::vector<std::string> loadable; ///< so are those that it may call besides
    catalogue_ptr made_under;          ///< and so is the policy
    sandbox_actor sandbox;             ///< null before the first run
    std::uint64_t lease = 0;           ///< the current one; 0: nobody runs code in it
    caf::actor_addr holder;            ///< of the lease
    time_point last_used{};
    std::int64_t used_at = 0; ///< see session_status
    std::deque<waiting_claim> waiting;
  };
  using sessions_map = std::map<std::string, session>; ///< by handle

  caf::result<session_lease> claim(session_claim& what);
  caf::result<session_lease> open(const session_claim& what);
  sessions_map::iterator longest_idle();
  void make_room();
  session_lease lend(sessions_map::iterator to, const session_claim& what,
                     const caf::strong_actor_ptr& holder);
  caf::actor_addr watch(const caf::strong_actor_ptr& holder);
  void release(const std::string& handle, std::uint64_t lease, const sandbox_actor& sandbox);
  void lend_to_next(sessions_map::iterator which);
  void lose(sessions_map::iterator which);
  void refuse_late_claims();
  void actor_died(const caf::actor_addr& which);
  std::vector<session_status> status() const;
  std::int64_t wall_time() const;

  python_sessions_impl_actor::pointer self;
  environment_ptr env;
  sessions_map sessions;             ///< by handle
  std::set<caf::actor_addr> holders; ///< monitored
  std::uint64_t last_lease = 0;

  /// Claims of one session that wait; one more is refused.
  static constexpr std::size_t most_waiting = 8;

  static inline const char* name = "python-sessions";
};

python_sessions_impl_actor::behavior_type
python_sessions(python_sessions_impl_actor::stateful_pointer<python_sessions_state> self,
                environment_ptr env);

} // namespace bulkhead
