#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/mcp_call_table.hpp"
#include "actors/outbox.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/restart_budget.hpp"
#include "protocol/upstream_lines.hpp"
#include "protocol/upstream_text.hpp"

namespace bulkhead {

/// The client with its own timer.
using mcp_client_impl_actor = mcp_client_actor::extend_with<server_owner_actor>::extend<
    /// Something may be due.
    caf::reacts_to<tick_atom>>;

/// The process of a server as it is started: minimal environment, then what `entry` gives, then the
/// marks by which it and its descendants are found (`marker`) and by which a Bulkhead among them
/// notices that it runs below another one (BULKHEAD_DEPTH).
process_spec upstream_process(const environment& env, const server_entry& entry,
                              const std::string& marker);

/// A running tools/list.
struct tool_listing {
  std::uint64_t request = 0;
  std::chrono::steady_clock::time_point due;
  std::vector<tool_document> tools;
  std::set<std::string> names;
  std::set<std::string> cursors;
  std::size_t pages = 0;
  std::size_t bytes = 0;
  std::uint32_t hidden = 0; ///< tools that need tasks
  std::optional<std::chrono::milliseconds> time_to_live;
};

/// One upstream MCP server over stdio: started on demand, kept warm, restarted within a budget. Its
/// failures are answers to whoever waits, never its own end.
struct mcp_client_state {
  explicit mcp_client_state(mcp_client_impl_actor::pointer self);
  mcp_client_impl_actor::behavior_type make_behavior();

  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;

  enum class phase : std::uint8_t {
    idle,         ///< no process; a new start may have to wait for the restart budget
    spawning,     ///< asked the process host for one
    probing,      ///< sent server/discover
    initializing, ///< sent initialize
    ready,
    stopping, ///< the process is being ended, for good or before another start
  };

  /// How far the end of the process has come.
  enum class stop_step : std::uint8_t { none, input_closed, terminated, killed, reaping };

  struct documents_waiter {
    caf::typed_response_promise<documents_ptr> promise;
    time_point due;
  };

  // Requests (mcp_client_calls.cpp, mcp_client_lists.cpp).
  caf::result<std::string> call(tool_call& request);
  caf::result<documents_ptr> documents_for(deadline due);
  void cancel(std::uint64_t caller_id);
  client_status status();
  caf::result<caf::ok_atom> stop();

  // The process (mcp_client_process.cpp).
  void ensure_started();
  void spawn();
  void start_failed(const error& reason);
  void child_ended(const child_exited& exit);
  void connection_ended();
  void take_output(child_output& output);
  void output_ended();
  void output_lost();
  void give_credit(stream_id stream, std::uint64_t bytes);
  void charge_partial_line();
  bool write(std::string line);
  void reply(std::string line);
  void pump();
  void begin_stop();
  void advance_stop();
  void reap();
  void process_is_gone();
  void confirm_stop();
  void abandon(const error& reason);

  // Time (mcp_client.cpp).
  time_point now();
  void tick();
  void arm();
  std::optional<time_point> next_due();

  // Messages of the server (mcp_client_handshake.cpp).
  void take_line(std::string_view line);
  void take_unreadable(errc reason, std::string_view why, std::string_view head,
                       std::string_view tail);
  void take_response(const rpc_message& message);
  void refused(std::uint64_t request, error reason);
  void begin_handshake();
  void send_discover();
  void send_initialize();
  void discovered(const rpc_message& answer);
  void initialized(const rpc_message& answer);
  void become_ready(upstream::era generation, upstream::identity server);

  // Calls (mcp_client_calls.cpp).
  void send_waiting();
  void send_call(std::uint64_t id);
  upstream::call_details details_of(const upstream_call& call) const;
  void abandon_call(std::uint64_t id, std::string_view why);
  void finish_call(std::uint64_t id, const rpc_message& answer);
  void fail_call(std::uint64_t id, errc code, std::string_view why);
  void expire_calls();
  void fail_waiting(const error& reason);
  error call_failure(const upstream_call& call, const upstream::failure& reason) const;

  // Questions, progress, logs (mcp_client_questions.cpp).
  using answer_handler = std::function<void(const expected<std::string>&)>;
  client_abilities abilities() const;
  void take_request(const rpc_message& message);
  void take_notification(const rpc_message& message);
  void take_progress(std::string_view params);
  void ask(std::uint64_t id, upstream::question what, answer_handler then);
  void answered(std::uint64_t caller_id, expected<std::string> answer, const answer_handler& then);
  void require_input(std::uint64_t id, const upstream::input_required& needed);
  void ask_for_input(std::uint64_t id, std::string key, upstream::question what);
  void make_due_calls_again();
  void make_again(std::uint64_t id);

  // Lists (mcp_client_lists.cpp).
  bool documents_fresh();
  void begin_listing();
  void request_page(std::string_view cursor);
  void take_page(const rpc_message& answer);
  void finish_listing(std::string_view note);
  void fail_listing(error reason);
  void expire_documents();

  // Texts.
  std::string subject() const;
  std::string last_words() const;
  error still_starting() const;
  error budget_refusal();
  void note_failure(const error& reason);

  bool starting() const {
    return current == phase::spawning || current == phase::probing ||
           current == phase::initializing;
  }
  /// It is reached over the network; nothing of ours ends with it.
  bool remote() const { return entry.transport != server_transport::stdio; }
  bool wanted() const { return !calls.empty() || !waiters.empty(); }

  mcp_client_impl_actor::pointer self;
  environment_ptr env;
  child_host_actor processes;
  server_entry entry;
  bool serves_several = false; ///< tenants; each is one caller to it

  phase current = phase::idle;
  bool told_to_stop = false;
  std::uint64_t last_request = 0;
  std::string last_error;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stop_promises;
  std::optional<time_point> armed;

  // This process.
  std::optional<child_id> child;
  std::string marker;
  time_point started_at;
  std::optional<time_point> start_due;
  std::optional<upstream::lines> lines;
  std::optional<upstream::stderr_tail> stderr_end;
  std::optional<outbox> out;
  std::uint64_t unwritten = 0;
  std::uint64_t owed_credit[2] = {0, 0};
  memory_budget::share partial_line;
  std::optional<time_point> step_due;
  std::optional<time_point> exit_due; ///< its stdout has ended, so that it should
  stop_step step = stop_step::none;

  // The handshake.
  upstream::era generation = upstream::era::unknown; ///< also of later processes
  bool skip_probe = false; ///< the last process ended when asked to discover
  bool discover_sent = false;
  std::uint64_t discover_request = 0;   ///< 0: none is unanswered
  std::uint64_t initialize_request = 0; ///< likewise
  std::optional<time_point> probe_due;
  std::optional<upstream::identity> late_modern; ///< discovered after all, meanwhile initializing
  std::optional<error> initialize_failure;
  upstream::identity server;
  client_abilities declared; ///< to a legacy server, when this process was started

  restart_budget restarts;
  upstream::secret_filter secrets;

  mcp_call_table calls;
  std::set<std::pair<time_point, std::uint64_t>> again; ///< calls to be made again, by caller's id
  rate_gate log_gate{20, std::chrono::seconds{1}};
  rate_gate list_gate{5, std::chrono::seconds{1}};
  std::deque<std::uint64_t> cancelled_early; ///< cancels that overtook their calls
  std::vector<documents_waiter> waiters;
  std::optional<tool_listing> list;
  documents_ptr documents;
  bool documents_changed = true; ///< must be listed anew
  std::optional<time_point> documents_expire;

  static inline const char* name = "mcp-client";
};

mcp_client_impl_actor::behavior_type
mcp_client(mcp_client_impl_actor::stateful_pointer<mcp_client_state> self, environment_ptr env,
           child_host_actor processes, server_entry entry);

} // namespace bulkhead
