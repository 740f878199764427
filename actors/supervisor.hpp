#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/ledger.hpp"
#include "actors/run_request.hpp"
#include "actors/sandbox_pool.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// The handles of the actors that serve everybody. A restarted actor's new handle appears here;
/// whoever starts something takes the handles that are current then. Thread-safe.
class service_directory {
public:
  struct services {
    process_host_actor processes;
    http_host_actor http;
    credential_store_actor credentials; ///< null: there are no tokens
    volume_manager_actor volumes;
    container_runtime_actor runtime;
    client_registry_actor registry;
    tool_library_actor library;
    artifact_store_actor store;
    admission_actor admission;
    python_sessions_actor sessions;
    ledger_actor ledger; ///< null where none is kept
    approval_store_actor approvals;
    sandbox_pool_actor pool; ///< null where none is configured
  };

  /// What is configured now. Set before anything is started; null in tests that need none.
  std::shared_ptr<current_catalogue> configured;

  /// Turns to boot, of all engines of the process; null: each sandbox boots at once. Set before
  /// anything is started.
  admission_actor boots;

  /// Outlives the pools that fill it.
  const std::shared_ptr<sandbox_shelf> shelf = std::make_shared<sandbox_shelf>();

  services get() const {
    std::lock_guard guard{mutex_};
    return services_;
  }

  template <class Change>
  void update(Change change) {
    std::lock_guard guard{mutex_};
    change(services_);
  }

private:
  mutable std::mutex mutex_;
  services services_;
};

/// Gives a service's handle as it is when asked: the service may have been started again.
template <class Handle>
std::function<Handle()> current(std::shared_ptr<service_directory> directory,
                                Handle service_directory::services::*slot) {
  return [directory, slot] { return directory->get().*slot; };
}

/// The root of the tree.
using supervisor_actor = caf::typed_actor<
    /// Answers once the tree has been started.
    caf::replies_to<ensure_atom>::with<caf::ok_atom>,
    /// A connection's session exists; it is stopped first when the process stops.
    caf::reacts_to<create_atom, mcp_session_actor>,
    /// A sandbox exists; the process stops only when it is gone.
    caf::reacts_to<create_atom, sandbox_actor>,
    /// Stops everything in stages; answers when all that was started is gone or the budget is up.
    caf::replies_to<stop_atom>::with<caf::ok_atom>,
    /// The next stage of a stop, or its end, whatever is left (a timer and the stages send this).
    caf::reacts_to<tick_atom, std::uint64_t>>;

/// What the tree is made from.
struct supervisor_plan {
  environment_ptr env;
  std::shared_ptr<service_directory> services;
  /// Each starts one actor anew; called in the order of the fields at start, alone at a restart.
  std::function<process_host_actor()> start_processes;
  std::function<http_host_actor()> start_http;
  /// Null: no tokens are kept.
  std::function<credential_store_actor()> start_credentials;
  std::function<volume_manager_actor()> start_volumes;
  std::function<container_runtime_actor()> start_runtime;
  std::function<client_registry_actor()> start_registry;
  std::function<tool_library_actor()> start_library;
  std::function<artifact_store_actor()> start_store;
  std::function<admission_actor()> start_admission;
  std::function<python_sessions_actor()> start_sessions;
  /// Null: there is none.
  std::function<ledger_actor()> start_ledger;
  std::function<approval_store_actor()> start_approvals;
  /// Null: no sandboxes are kept booted.
  std::function<sandbox_pool_actor(const supervisor_actor& supervisor)> start_pool;
  /// Tells the container driver that a stop has begun. Null: it isn't told.
  std::function<void()> about_to_stop;
  /// A core actor is lost for good: the process must end. Called once, from the supervisor.
  std::function<void(std::string what)> fatal;
};

/// Starts the tree in order, restarts leaves within a budget (5 in 10 minutes each), stops in
/// stages: sessions, then sandboxes and upstream servers, then what the container driver keeps
/// running, then folders.
struct supervisor_state {
  explicit supervisor_state(supervisor_actor::pointer self);
  supervisor_actor::behavior_type make_behavior();

  enum class stage : std::uint8_t { running, sessions, sandboxes, folders, over };

  /// An actor that can be started again.
  struct leaf {
    std::string what;
    std::function<caf::actor_addr()> start;
    caf::actor_addr address;
    std::vector<std::chrono::steady_clock::time_point> restarts;
  };

  void start_all();
  void start(leaf& which);
  void died(const caf::down_msg& down);
  void restart(leaf& which, const std::string& cause);
  caf::result<caf::ok_atom> stop();
  void enter(stage next);
  void stop_session(const mcp_session_actor& session);
  void stop_sandboxes();
  void stop_runtime();
  void stop_ledger();
  void stop_folders();
  void advance_when_empty();

  supervisor_actor::pointer self;
  supervisor_plan plan;
  std::vector<leaf> leaves;
  std::map<caf::actor_addr, mcp_session_actor> sessions;
  std::map<caf::actor_addr, sandbox_actor> sandboxes;
  bool registry_stopped = false;
  bool failed = false; ///< `plan.fatal` was called
  stage now = stage::running;
  std::vector<caf::typed_response_promise<caf::ok_atom>> promises;

  static inline const char* name = "supervisor";
};

supervisor_actor::behavior_type
supervisor(supervisor_actor::stateful_pointer<supervisor_state> self, supervisor_plan plan);

/// Makes sandboxes that have yet to boot and are registered with the supervisor.
std::function<sandbox_actor()>
make_sandbox_maker(caf::actor_system& system, const environment_ptr& env,
                   const std::shared_ptr<service_directory>& services,
                   const supervisor_actor& supervisor);

/// Makes invocations; their sandboxes come from the shelf while there are any.
run_starter make_run_starter(caf::actor_system& system, const environment_ptr& env,
                             const std::shared_ptr<service_directory>& services,
                             const supervisor_actor& supervisor, ledger_writer ledger = {});

} // namespace bulkhead
