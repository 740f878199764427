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

#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/ledger.hpp"
#include "actors/memory_budget.hpp"
#include "actors/run_book.hpp"
#include "actors/run_request.hpp"
#include "protocol/client_abilities.hpp"
#include "protocol/client_info.hpp"
#include "protocol/client_questions.hpp"
#include "protocol/mcp_prompts.hpp"
#include "protocol/mcp_request.hpp"
#include "protocol/mcp_server.hpp"
#include "protocol/run_python.hpp"
#include "protocol/served_things.hpp"
#include "protocol/subscriptions.hpp"

namespace bulkhead {

/// What a session talks to.
struct session_context {
  environment_ptr env;
  admission_actor admission;
  std::function<python_sessions_actor()> sessions; ///< the current one: it may be started again
  std::function<catalogue_ptr()> catalogue;        ///< the current one: files change
  run_starter start;                               ///< null: no code is run
  /// Gives what keeps artifacts and outputs, as it is when asked.
  std::function<artifact_store_actor()> store{};
  std::string owner = "local"; ///< of what this client's runs leave, and of its sessions
  ledger_writer ledger{};
  /// What is served besides; null: nothing, as always but in tests.
  std::shared_ptr<const served_things> served{};
  /// Has the client come back for the rest of what is said about a request (JSON id); null: the
  /// transport has no way back.
  std::function<void(const std::string& request)> break_off{};
  /// The process has this client only: `environment::client` tells what it can be asked.
  bool only_client = false;
  /// Who tells when `catalogue` gives another; null: nobody does.
  std::shared_ptr<current_catalogue> configured{};
  /// Shows people how the runs go on; null: nobody looks.
  std::shared_ptr<run_book> book{};
  /// Is the queue for runs full? Whoever gives it wants a call that is refused for that answered
  /// with an error that says when to try again, rather than with a result. Null: with a result.
  std::function<bool()> queue_full{};
};

/// The session with the timers it sends itself.
using mcp_session_impl_actor =
    mcp_session_actor::extend<caf::reacts_to<tick_atom>,
                              /// The deadline of a question has come.
                              caf::reacts_to<tick_atom, std::uint64_t>,
                              /// What a run has asked by now is put to the client.
                              caf::reacts_to<tick_atom, run_atom, std::string>,
                              /// A served thing's call has paused long enough.
                              caf::reacts_to<tick_atom, call_atom, std::string>,
                              /// An answer that nobody has come back for is dropped.
                              caf::reacts_to<tick_atom, end_atom, std::string>,
                              /// Whoever owns the run with that id wants it to end; its client gets
                              /// an answer, with the status cancelled.
                              caf::reacts_to<cancel_atom, std::string>>;

/// One connection, or all that one client asks in the modern era. That keeps no state here but the
/// requests in flight and the runs that wait for an answer of the client; the legacy era adds the
/// negotiated revision, what the client can be asked, and the log level.
struct mcp_session_state {
  explicit mcp_session_state(mcp_session_impl_actor::pointer self);
  mcp_session_impl_actor::behavior_type make_behavior();

  enum class phase : std::uint8_t { open, stopping, ended };

  /// A `tools/call` from its arrival to its answer.
  struct run_in_flight {
    enum class stage : std::uint8_t { queued, started };

    /// The id, JSON text, of the client's request that waits for this run; empty once the client
    /// has cancelled it, or was asked something by its answer.
    std::string request;
    answer_form form;
    client_abilities abilities; ///< what the client can be asked
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
    bool cancelled = false;
    /// Modern: the `requestState` with which the client is to come back; empty while a request of
    /// its waits.
    std::string state;
    std::size_t digest = 0;      ///< of the tool and its arguments; for a client that can be asked
    std::uint32_t questions = 0; ///< that were asked, for their keys
    bool gathering = false;      ///< questions are about to be put to the client
    /// Answers that came along with the call, for questions that have a name of their own.
    std::map<std::string, std::string, std::less<>> early;
  };

  /// Something that a run asks of the client.
  struct question {
    std::string run;
    std::string key;     ///< legacy: the id of our request; modern: the name in the result
    std::string request; ///< legacy: the client's request on whose way it was asked
    std::string method;
    std::string params; ///< as the client gets them; empty once they are sent in the legacy era
    memory_budget::share held;
    bool asked = false; ///< the client has it
    caf::typed_response_promise<std::string> promise;
  };

  /// A call of something served besides.
  struct served_run {
    served_call call;
    bool rested = false;   ///< the pause before its next step is over
    std::size_t asked = 0; ///< questions that the client has yet to answer
  };

  /// The answer of a run that ended while it waited for the client to come back.
  struct kept_answer {
    std::size_t digest = 0;
    std::string result; ///< JSON text
    memory_budget::share held;
  };

  // Messages of the client (mcp_session.cpp).
  void take_message(const std::string& text);
  void take_message(const std::string& text, trace_context from);
  void take_notification(const rpc_message& message);
  void take_request(const rpc_message& message);
  void dispatch(const rpc_message& message, const mcp_request& request);
  bool dispatch_lists(const rpc_message& message, const mcp_request& request);
  void dispatch_modern(const rpc_message& message, const mcp_request& request);
  void dispatch_legacy(const rpc_message& message, const mcp_request& request);
  void initialize(const rpc_message& message, const mcp_request& request);
  void set_log_level(const rpc_message& message, const mcp_request& request);
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

  // What clients want to be told of (mcp_session_subscriptions.cpp).
  void listen(const rpc_message& message, const mcp_request& request);
  void subscribe(const rpc_message& message, const mcp_request& request, bool yes);
  void tell_changed(bool changing_lists::*list);
  void tell_updated(const std::string& uri);

  // The prompt, and completion (mcp_session_prompts.cpp).
  void get_prompt(const rpc_message& message, const mcp_request& request);
  void complete(const rpc_message& message, const mcp_request& request);
  void complete_resource(const rpc_message& message, completion_request asked, answer_form form);

  // What is served besides (mcp_session_served.cpp).
  bool dispatch_served(const rpc_message& message, const mcp_request& request);
  bool list_served(const rpc_message& message, const mcp_request& request);
  bool use_served_resource(const rpc_message& message, const mcp_request& request);
  void call_served(const rpc_message& message, const mcp_request& request, std::string name);
  void step_served(const std::string& run);
  void take_step(const std::string& run, served_step step);
  void ask_served(const std::string& run, const std::vector<input_request>& questions);
  void answered_served(const std::string& run, const std::string& key, std::string answer,
                       bool refused);
  void finish_served(const std::string& run, served_step step);

  // Runs (mcp_session_runs.cpp).
  void call_tool(const rpc_message& message, const mcp_request& request);
  void start_run(const rpc_message& message, const mcp_request& request, python_call call,
                 input_responses early);
  void claim_session(const std::string& run, session_claim claim);
  void leave_session(run_in_flight& run);
  void admit(const std::string& run, bool again = false);
  void not_admitted(const std::string& run, error why, bool again);
  void admitted(const std::string& run, std::uint64_t ticket);
  void finished(const std::string& run, const run_answer& answer);
  void conclude(run_in_flight& run, std::string result, const run_answer& answer);
  void reject_call(const rpc_message& message, const mcp_request& request, run_status status,
                   error reason);
  void failed(const std::string& run, run_status status, error reason);
  void lost(const caf::down_msg& down);
  void progressed(const std::string& run, std::string_view message);
  void wrote(const std::string& run, const std::string& text);
  void log_end(const run_in_flight& run, const run_answer& answer);
  void note_unfinished(const run_in_flight& run, const run_answer& answer);
  void tell_end(const run_in_flight& run, run_status status) const;
  void cancel_run(std::map<std::string, run_in_flight>::iterator run);
  void cancel_for_owner(const std::string& run);
  void tick();
  void schedule_tick();

  // What people see of runs (mcp_session_book.cpp).
  void show_in_book();
  void show_asked(run_in_flight& run);
  void show_session(const run_in_flight& run);
  void show_end(const std::string& run, const run_answer& answer);

  // What runs ask of the client (mcp_session_questions.cpp).
  caf::result<std::string> ask(client_question& question);
  std::optional<error> why_not_ask(const client_question& question) const;
  std::string key_for(run_in_flight& run, const question& which, std::string key) const;
  void gather(run_in_flight& run);
  void put_to_client(const std::string& run);
  void ask_by_request(question& which, const std::string& request);
  void take_response(const rpc_message& message);
  void answer(std::uint64_t serial, std::string_view result);
  void end_question(std::uint64_t serial, error reason);
  void end_questions(const std::string& run, const error& reason);
  void withdraw(const question& which, std::string_view reason);
  void question_due(std::uint64_t serial);
  std::optional<input_responses> begin_or_come_back(const rpc_message& message,
                                                    const mcp_request& request);
  void come_back(const rpc_message& message, const mcp_request& request, input_responses back);
  void take_answers(run_in_flight& run, input_responses& back);
  std::optional<rpc_refusal> refuse_return(const std::string& run, std::size_t digest,
                                           const input_responses& back) const;
  void keep_answer(run_in_flight& run, std::string result);
  client_abilities abilities_of(const mcp_request& request) const;
  trace_context trace_of(const mcp_request& request) const;
  void note_abilities(const client_abilities& abilities);

  // The end (mcp_session.cpp).
  caf::typed_response_promise<caf::ok_atom> stop();
  void end_if_idle();
  void end();

  /// Sends a message that belongs to no request of the client.
  void write(std::string message);
  /// Sends one that does: its answer, or what is told or asked before.
  void write_for(std::string_view request, std::string message);
  void respond(std::string_view request, std::string_view result);
  void refuse(std::string_view request, const rpc_refusal& reason);

  mcp_session_impl_actor::pointer self;
  session_context context;
  front_end_actor out;
  std::string tool;     ///< the one tool's definition, JSON text
  changing_lists lists; ///< those that can change
  phase now = phase::open;
  std::string revision;                  ///< negotiated by `initialize`; empty before
  std::optional<log_severity> log_level; ///< set by `logging/setLevel`
  client_abilities abilities;            ///< of a legacy client, as it said in `initialize`
  bool modern_seen = false;
  trace_context arriving; ///< of the message that is being taken, as its transport said
  client_info client;     ///< as `initialize` told it
  std::map<std::string, run_in_flight> runs;                      ///< by the run's id
  std::map<std::string, std::string, std::less<>> requests;       ///< request id to run id
  std::map<std::string, subscription, std::less<>> subscriptions; ///< by request id
  std::set<std::string, std::less<>> subscribed;                  ///< legacy: URIs of resources
  bool ready = false;                          ///< legacy: the client has said `initialized`
  std::set<std::string, std::less<>> reads;    ///< request ids
  std::map<std::uint64_t, question> questions; ///< by a number of their own
  std::map<std::string, std::string, std::less<>> states; ///< `requestState` to run id
  std::map<std::string, kept_answer, std::less<>> kept;   ///< by `requestState`
  std::uint64_t last_question = 0;
  std::map<std::string, served_run> served; ///< by run id
  bool ticking = false;
  std::chrono::steady_clock::time_point stop_due;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stopping;

  static inline const char* name = "mcp_session";
};

mcp_session_impl_actor::behavior_type
mcp_session(mcp_session_impl_actor::stateful_pointer<mcp_session_state> self,
            session_context context, front_end_actor out);

} // namespace bulkhead
