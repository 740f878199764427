#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/ledger.hpp"
#include "actors/run_request.hpp"
#include "protocol/call_limits.hpp"
#include "protocol/log_line.hpp"
#include "protocol/output_capture.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

/// What an invocation talks to.
struct invocation_context {
  environment_ptr env;
  client_registry_actor registry;
  tool_library_actor library;
  std::function<python_sessions_actor()> sessions; ///< the current one: it may be started again
  /// Gives the sandbox of a run: a booted one if there is one, or always one that has yet to boot.
  std::function<sandbox_actor(bool booted_will_do)> make_sandbox;
  /// Null: nothing is kept.
  artifact_store_actor store{};
  /// What is configured while the run goes on; it can only take rights away. Null: nothing changes.
  std::shared_ptr<current_catalogue> configured{};
  ledger_writer ledger{};
  /// Null: no tool has a stored approval.
  std::function<approval_store_actor()> approvals{};
  std::shared_ptr<call_rates> rates = std::make_shared<call_rates>();
};

/// The invocation with the timer it sends itself.
using invocation_impl_actor = invocation_actor::extend<
    /// The code's time is up.
    caf::reacts_to<tick_atom>,
    /// It is time to tell what was written last.
    caf::reacts_to<tick_atom, run_atom>>;

/// One run: its deadline, its output, its rights, its tool calls, its one answer.
struct invocation_state {
  explicit invocation_state(invocation_impl_actor::pointer self);
  invocation_impl_actor::behavior_type make_behavior();

  enum class phase : std::uint8_t {
    fresh,
    booting,
    running,
    interrupting, ///< the code of a session was told to stop, so that the session lives on
    over,
  };

  /// A server that this run may call, as far as it is known.
  struct link {
    enum class state : std::uint8_t { unknown, connecting, ready, failed };
    state now = state::unknown;
    server_brief brief;
    bool named = false; ///< by who asked for the run; others are loaded when the code names them
    mcp_client_actor client;
    tool_shelf_ptr tools; ///< only those that the run may use
    error failure;
    std::vector<guest_call> waiting;
    bool pauses = false; ///< the run's clock, see run_request::patient

    /// By its raw name or its alias.
    bool is_called(std::string_view name) const {
      return brief.name == name || brief.alias == name;
    }
  };

  // Life (invocation.cpp).
  void be_watched();
  caf::result<run_answer> run();
  void begin(const catalogue_ptr& all);
  std::vector<std::string> loadable_servers() const;
  void send_to(sandbox_actor which);
  void try_another(error reason);
  void up();
  void finished(guest_done& done);
  void lost(sandbox_lost& loss);
  void cut_short(run_status status, error reason);
  void stop_code(run_status status, error reason);
  void finish(run_status status);
  bool goes_on() const;
  void enter_session();
  void leave_session();
  void take_output(guest_output& output);
  void dealt_with_call();
  void time_is_up();
  void report(std::string message);

  // What the log gets (invocation_log.cpp).
  log_ids ids() const;
  spdlog::level::level_enum run_log_level() const;
  void log_begin() const;
  void log_end() const;
  void log_tallies() const;

  void output_dealt_with();

  /// A stream's way to the store.
  struct spill {
    bool begun = false;
    kept_bytes kept;
  };

  // What it leaves (invocation_artifacts.cpp).
  void need_handle();
  bool wants_spill(const spill& of, std::uint64_t total) const;
  void keep_output(guest_output& output, const std::function<void()>& done);
  void append_to_store(stream_id stream, std::string before, const std::string& bytes,
                       const std::function<void()>& done);
  void take_artifact(guest_artifact& artifact);
  void store_artifact(guest_artifact& artifact, const std::shared_ptr<memory_budget::share>& share);
  void add_artifact(kept_artifact kept);
  void lose_artifact(std::string why);
  void keep_what_is_not_shown();
  void deliver_when_kept();
  void deliver();
  void note_live(std::string_view bytes);
  void tell_latest();

  // Calls from the code (invocation_calls.cpp).
  void take_call(guest_call& call);
  void route(guest_call& call);
  void route_to(link& to, guest_call& call);
  void serve(link& to, guest_call& call);
  void call_tool(link& to, guest_call& call, bool checked = false);
  void send_call(link& to, const std::string& tool, guest_call& call);
  void ask_library(guest_call call, std::vector<tool_shelf_ptr> among);
  void next_question();
  void connect(link& to);
  void fetch_documents(link& to);
  void shelve(link& to, const documents_ptr& documents);
  void settle(link& to);
  link* find_link(std::string_view server);
  policy_verdict may_call(std::string_view server, const tool_document& tool) const;
  std::string withdrawn(std::string_view server, std::string_view tool) const;
  void refuse_unknown_server(const guest_call& call);
  void respond(std::uint64_t call, std::string payload, const answer_room& room = {});
  void refuse(std::uint64_t call, error reason);
  std::chrono::nanoseconds time_left() const;
  std::chrono::nanoseconds start_patience(const link& to) const;
  void wait_for(link& to, guest_call& call);
  std::string waited_for() const;

  // Questions to the client, and how far calls are (invocation_questions.cpp).
  void tell_progress(const tool_progress& progress);
  void tell_latest_progress();
  caf::result<std::string> pass_on(server_question& question);
  void ask_client(std::string server, std::string method, std::string params,
                  std::function<void(const expected<std::string>&)> then);
  std::chrono::nanoseconds paused_so_far() const;
  void pause();
  void go_on();
  void withdraw_questions();
  void cancel_call(std::uint64_t id);

  // What is known of tools (invocation_discovery.cpp).
  catalogue_ptr present_catalogue() const;
  bool may_know(std::string_view server) const;
  void search(const guest_call& call);
  void finish_searches();
  void about_servers(tool_question& question) const;
  bool arguments_fit(link& to, const tool_document& tool, guest_call& call);
  void check_elsewhere(link& to, guest_call& call);
  /// A call that needs a person's yes.
  struct approval {
    link* to;
    guest_call call;
    std::string rule; ///< of policy that asks for it
    tool_identity what;
    bool changed = false;   ///< there was an approval, of another definition
    bool withdrawn = false; ///< the code gave up on the call, which is answered
  };

  // Calls that a person has to approve (invocation_approval.cpp).
  void need_approval(link& to, const tool_document& tool, guest_call& call, std::string rule);
  void next_approval();
  void ask_person();
  void take_decision(const std::string& result);
  void approve(bool for_good);
  void deny_unapproved(const std::string& why);
  bool withdraw_approval(std::uint64_t id);
  void approval_dealt_with();

  // What the ledger gets (invocation_ledger.cpp).
  void note_call(const guest_call& call);
  void note_sent(const guest_call& call);
  void note_tool(std::uint64_t call, const std::string& server, const std::string& tool,
                 const std::string& rule = {});
  void note_end(std::uint64_t call, std::string_view outcome, std::uint64_t result_bytes = 0);
  void note_result(std::uint64_t call, std::string_view result);
  void note_answered(std::uint64_t call, std::string_view outcome);
  void note_refused(const refused_call& call);
  void note_run();

  invocation_impl_actor::pointer self;
  invocation_context context;
  run_request request;
  std::shared_ptr<memory_budget> budget; ///< the run's own, of the whole process's
  phase now = phase::fresh;
  sandbox_actor sandbox;
  sandbox_run what; ///< kept until it runs: a booted sandbox may have died while it waited
  bool tried_another = false;
  bool session_kept = false;                 ///< the interpreter waits for the session's next run
  run_status stopped_as = run_status::error; ///< what the run is once its code is interrupted
  error stopped_for;
  catalogue_ptr catalogue;
  run_rights rights;
  std::map<std::string, link> links;   ///< by raw name
  std::vector<guest_call> searches;    ///< wait until no link is connecting
  std::deque<tool_question> questions; ///< wait until others are answered
  std::uint32_t questions_asked = 0;   ///< those that the library works on
  /// Tool calls on their way: the guest's id to the client and its id there.
  struct outgoing {
    const link* to;
    std::string tool; ///< raw name
    mcp_client_actor client;
    std::uint64_t call = 0;
    std::chrono::steady_clock::time_point since;
  };
  std::map<std::uint64_t, outgoing> calls;
  /// Calls of every kind that aren't answered, with the memory their arguments hold.
  std::map<std::uint64_t, memory_budget::share> open_calls;
  std::set<std::uint64_t> given_up; ///< of them, those whose answers nobody waits for
  std::uint64_t calls_refused = 0;  ///< unusable ones
  std::uint64_t calls_repeated = 0; ///< with an id in use
  call_counts counted;
  std::deque<approval> approvals; ///< the first of them is asked about
  bool approval_open = false;
  std::uint32_t people_asked = 0;
  std::set<std::pair<std::string, std::string>> declined; ///< server and tool, raw names
  ledger_run ran;
  /// Calls that the ledger gets when they are answered, by the guest's id.
  struct noted_call {
    ledger_call what;
    std::chrono::steady_clock::time_point since;
    bool sent = false; ///< its server got it
  };
  std::map<std::uint64_t, noted_call> noted;
  output_capture out;
  output_capture err;
  std::uint32_t outputs_shown = 0;   ///< those that observer or store haven't dealt with
  std::uint32_t credit_withheld = 0; ///< for calls that came after such outputs
  stored_run stored;                 ///< its handle is empty until something is kept
  spill out_spill;
  spill err_spill;
  std::uint32_t store_pending = 0; ///< requests to the store
  bool sealing = false;
  std::uint32_t artifacts_taken = 0;
  std::uint64_t artifact_bytes = 0;
  std::string latest; ///< what was written last and hasn't been told
  bool live_due = false;
  std::string latest_progress; ///< of a call, that hasn't been told
  std::uint64_t last_question = 0;
  std::map<std::uint64_t, caf::typed_response_promise<std::string>> asked; ///< by servers
  std::uint32_t questions_open = 0; ///< while there are any, the clock stands still
  std::chrono::steady_clock::time_point paused_since;
  std::chrono::nanoseconds paused{}; ///< by questions that are answered
  run_answer answer;
  caf::typed_response_promise<run_answer> promise;
  std::chrono::steady_clock::time_point due;
  std::chrono::steady_clock::time_point began;

  /// Log lines that a run may cause of a kind; its code could make thousands a second.
  static constexpr std::uint64_t most_lines = 5;

  static inline const char* name = "invocation";
};

invocation_impl_actor::behavior_type
invocation(invocation_impl_actor::stateful_pointer<invocation_state> self,
           invocation_context context, run_request request);

} // namespace bulkhead
