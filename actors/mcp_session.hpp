#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/ledger.hpp"
#include "actors/memory_budget.hpp"
#include "actors/run_request.hpp"
#include "protocol/client_info.hpp"
#include "protocol/mcp_request.hpp"
#include "protocol/mcp_server.hpp"

namespace bulkhead {

/// What a session talks to.
struct session_context {
  environment_ptr env;
  admission_actor admission;
  std::function<python_sessions_actor()> sessions; ///< the current one: it may be started again
  catalogue_ptr catalogue;
  run_starter start;
  /// Gives what keeps artifacts and outputs, as it is when asked.
  std::function<artifact_store_actor()> store{};
  std::string owner = "local"; ///< of what this client's runs leave, and of its sessions
  ledger_writer ledger{};
};

/// The session with the timer it sends itself.
using mcp_session_impl_actor = mcp_session_actor::extend<caf::reacts_to<tick_atom>>;

/// One connection. The modern era keeps no state here but the requests in flight; the legacy era
/// adds the negotiated revision and the log level.
struct mcp_session_state {
  explicit mcp_session_state(mcp_session_impl_actor::pointer self);
  mcp_session_impl_actor::behavior_type make_behavior();

  enum class phase : std::uint8_t { open, stopping, ended };

  /// A `tools/call` from its arrival to its answer.
  struct run_in_flight {
    enum class stage : std::uint8_t { queued, started };

    std::string request; ///< the request's id, JSON text; empty once the client has cancelled it
    answer_form form;
    std::string progress_token; ///< JSON text; empty: no progress wanted
    std::uint64_t progress = 0;
    std::string last_progress;
    std::optional<log_severity> log_level;
    stage now = stage::queued;
    run_request what;
    std::uint64_t ticket = 0;
    invocation_actor invocation;
    std::chrono::steady_clock::time_point since;
    memory_budget::share held; ///< for the code
  };

  // Messages of the client (mcp_session.cpp).
  void take_message(const std::string& text);
  void take_notification(const rpc_message& message);
  void take_request(const rpc_message& message);
  void dispatch(const rpc_message& message, const mcp_request& request);
  bool dispatch_lists(const rpc_message& message, const mcp_request& request);
  void dispatch_modern(const rpc_message& message, const mcp_request& request);
  void dispatch_legacy(const rpc_message& message, const mcp_request& request);
  void initialize(const rpc_message& message, const mcp_request& request);
  void set_log_level(const rpc_message& message, const mcp_request& request);
  void listen(const rpc_message& message, const mcp_request& request);
  void cancel(std::string_view request);
  answer_form form_for(const mcp_request& request) const;
  bool in_flight(std::string_view request) const;

  // Resources (mcp_session_resources.cpp).
  void read_resource(const rpc_message& message, const mcp_request& request);
  void read_stored(const rpc_message& message, const resource_uri& what, std::string uri,
                   answer_form form);
  void list_resources(const rpc_message& message, const mcp_request& request);
  bool begin_read(const rpc_message& message);
  bool end_read(const std::string& request);

  // Runs (mcp_session_runs.cpp).
  void call_tool(const rpc_message& message, const mcp_request& request);
  void claim_session(const std::string& run, session_claim claim);
  void leave_session(run_in_flight& run);
  void admit(const std::string& run);
  void admitted(const std::string& run, std::uint64_t ticket);
  void finished(const std::string& run, const run_answer& answer);
  void failed(const std::string& run, run_status status, error reason);
  void lost(const caf::down_msg& down);
  void progressed(const std::string& run, std::string_view message);
  void wrote(const std::string& run, const std::string& text);
  void log_end(const run_in_flight& run, const run_answer& answer);
  void note_unfinished(const run_in_flight& run, const run_answer& answer);
  void cancel_run(std::map<std::string, run_in_flight>::iterator run);
  void tick();
  void schedule_tick();

  // The end (mcp_session_runs.cpp).
  caf::typed_response_promise<caf::ok_atom> stop();
  void end_if_idle();
  void end();

  void write(std::string message);
  void refuse(std::string_view request, const rpc_refusal& reason);

  mcp_session_impl_actor::pointer self;
  session_context context;
  front_end_actor out;
  std::string tool; ///< the one tool's definition, JSON text
  phase now = phase::open;
  std::string revision;                  ///< negotiated by `initialize`; empty before
  std::optional<log_severity> log_level; ///< set by `logging/setLevel`
  bool modern_seen = false;
  client_info client;                                       ///< as `initialize` told it
  std::map<std::string, run_in_flight> runs;                ///< by the run's id
  std::map<std::string, std::string, std::less<>> requests; ///< request id to run id
  std::set<std::string, std::less<>> subscriptions;         ///< request ids
  std::set<std::string, std::less<>> reads;                 ///< request ids
  bool ticking = false;
  std::chrono::steady_clock::time_point stop_due;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stopping;

  static inline const char* name = "mcp_session";
};

mcp_session_impl_actor::behavior_type
mcp_session(mcp_session_impl_actor::stateful_pointer<mcp_session_state> self,
            session_context context, front_end_actor out);

} // namespace bulkhead
