#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <nlohmann/json.hpp>

#include "actors/interfaces.hpp"
#include "actors/mcp_session.hpp"

/// What surrounds a session, scripted. Only for the deterministic scheduler.

namespace bulkhead::testing {

/// The actor of a run whose course the test decides.
using scripted_run_actor = invocation_actor::extend<
    /// Ends the run with this answer.
    caf::reacts_to<end_atom, run_answer>>;

struct scripted_run {
  run_request request;
  scripted_run_actor actor;
  bool began = false;     ///< `run_atom` came
  bool cancelled = false; ///< `cancel_atom` came
  caf::typed_response_promise<run_answer> promise;
};

/// The runs that a session started, in order.
using scripted_runs = std::vector<std::shared_ptr<scripted_run>>;

/// Admission as the test wants it.
struct admission_script {
  std::uint64_t places = 100; ///< tickets to give; then requests wait
  bool overloaded = false;    ///< refuse all
  std::vector<std::uint64_t> given;
  std::vector<std::uint64_t> released;
  std::vector<deadline> deadlines;
};

struct scripted_admission_state {
  explicit scripted_admission_state(admission_actor::pointer) {}
  std::vector<caf::typed_response_promise<std::uint64_t>> waiting;
  static inline const char* name = "scripted-admission";
};

admission_actor::behavior_type
scripted_admission(admission_actor::stateful_pointer<scripted_admission_state> self,
                   std::shared_ptr<admission_script> script);

/// What a session writes: each message, parsed, and the client's request that it belongs to (null:
/// none).
struct written_messages {
  std::vector<nlohmann::json> messages;
  std::vector<nlohmann::json> requests;
};

front_end_actor::behavior_type recording_front_end(front_end_actor::pointer self,
                                                   std::shared_ptr<written_messages> written);

/// An environment with default settings, ids "run-1", "run-2", … and a log that goes nowhere.
std::shared_ptr<environment> test_environment();

/// Makes a session's context of scripted parts.
session_context scripted_context(caf::actor_system& system, environment_ptr env,
                                 std::shared_ptr<scripted_runs> runs,
                                 std::shared_ptr<admission_script> admission,
                                 catalogue_ptr catalogue);

} // namespace bulkhead::testing
