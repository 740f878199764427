#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "actors/io/child.hpp"
#include "actors/io/io_thread.hpp"
#include "protocol/limits.hpp"

namespace bulkhead {

/// What the I/O thread tells the process host, besides the interface that all see.
using process_host_impl_actor = process_host_actor::extend<
    /// The I/O thread tried to start the child of a spawn, attach or command request.
    caf::reacts_to<spawn_atom, child_id, io::child_ptr, error>,
    /// A child was reaped.
    caf::reacts_to<child_exited>,
    /// A command is over, or was killed at its deadline (the flag).
    caf::reacts_to<command_atom, child_id, finished_process, bool>,
    /// An HTTP exchange is over; the answer, or why there is none.
    caf::reacts_to<call_atom, child_id, socket_answer, error>>;

} // namespace bulkhead

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::io::child_ptr)
CAF_BEGIN_TYPE_ID_BLOCK(bulkhead_process_host, caf::id_block::bulkhead_handles::end)
CAF_ADD_TYPE_ID(bulkhead_process_host, (bulkhead::io::child_ptr))
CAF_END_TYPE_ID_BLOCK(bulkhead_process_host)

namespace bulkhead {

/// Hands requests over to the I/O thread, where the children live, and answers for it.
struct process_host_state {
  explicit process_host_state(process_host_impl_actor::pointer self);
  process_host_impl_actor::behavior_type make_behavior();

  struct child {
    io::child_ptr process; ///< null until started
    child_owner_actor owner;
    caf::typed_response_promise<child_started> promise;
  };

  struct command {
    process_spec spec;
    std::string input;
    deadline due;
    caf::typed_response_promise<finished_process> promise;
  };

  caf::result<child_started> spawn(process_spec& spec, const child_owner_actor& owner);
  caf::result<child_started> attach(stream_request& request, const child_owner_actor& owner);
  caf::typed_response_promise<child_started> expect_child(child_id id,
                                                          const child_owner_actor& owner);
  caf::result<socket_answer> call(socket_request& request, deadline due);
  caf::result<finished_process> run(process_spec& spec, std::string& input, deadline due);
  void started(child_id id, const io::child_ptr& process, const error& failure);
  void owner_died(const caf::actor_addr& owner);
  void forget(child_id id);
  template <class Function>
  void with_child(child_id id, Function function);

  process_host_impl_actor::pointer self;
  io::io_thread* io = nullptr;
  limits bounds;
  child_id last_id = 0;
  std::unordered_map<child_id, child> children;
  std::unordered_map<child_id, command> commands;
  std::unordered_map<child_id, caf::typed_response_promise<socket_answer>> calls;

  static inline const char* name = "process-host";
};

process_host_impl_actor::behavior_type
process_host(process_host_impl_actor::stateful_pointer<process_host_state> self, io::io_thread* io,
             limits bounds);

} // namespace bulkhead
