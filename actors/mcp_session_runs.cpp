#include "actors/mcp_session.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/errors.hpp"
#include "actors/log_scope.hpp"
#include "protocol/http_mcp.hpp"
#include "protocol/json_text.hpp"
#include "protocol/run_answer.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

/// How long a call may wait for its turn; clients give up on a request after 60 s, commonly.
constexpr seconds queue_wait{30};
/// After which a call that found the queue full may come again.
constexpr seconds overload_pause{2};
/// An invocation ends itself; should it not, this long after its code's deadline it is given up.
/// Booting, starting upstream servers, asking the client and interrupting the code happen outside
/// that deadline.
constexpr seconds run_allowance{180};
/// Between two signs of life of a run.
constexpr seconds progress_interval{5};

run_answer answer_of(run_status status, error reason) {
  run_answer answer;
  answer.status = status;
  answer.failure = std::move(reason);
  return answer;
}

run_status status_of(const error& reason) {
  switch (reason.code) {
  case errc::unavailable:
  case errc::overloaded:
  case errc::timeout:
    return run_status::unavailable;
  case errc::denied:
    return run_status::validation_error;
  case errc::closed:
    return run_status::session_lost;
  default:
    return run_status::error;
  }
}

rpc_refusal invalid_call(std::string message) {
  return {rpc_code::invalid_params, std::move(message), {}};
}

/// What is wrong with a call besides the tool's arguments, if anything.
std::optional<rpc_refusal> refuse_call(const mcp_request& request) {
  auto name = request.text("name");
  if (!name) {
    return invalid_call("tools/call: name must be a string");
  }
  if (*name != run_python_name) {
    return invalid_call(fmt::format("Unknown tool: {}; there is only {}",
                                    std::string_view{*name}.substr(0, 100), run_python_name));
  }
  auto arguments = request.find("arguments");
  if (!arguments.empty() && !is_json_object(arguments)) {
    return invalid_call("tools/call: arguments must be an object");
  }
  return std::nullopt;
}

} // namespace

void mcp_session_state::call_tool(const rpc_message& message, const mcp_request& request) {
  if (auto refusal = refuse_call(request)) {
    refuse(message.id, *refusal);
    return;
  }
  auto back = begin_or_come_back(message, request);
  if (!back) {
    return;
  }
  if (!context.start) {
    reject_call(message, request, run_status::unavailable,
                {errc::unavailable, "this server runs no code: it was started without a token"});
    return;
  }
  const auto& env = *context.env;
  auto call =
      read_python_call(request.find("arguments"), *context.catalogue(), *env.config, env.bounds);
  if (call) {
    start_run(message, request, std::move(*call), std::move(*back));
  } else {
    reject_call(message, request, run_status::validation_error, std::move(call.error()));
  }
}

/// Answers a call that doesn't become a run.
void mcp_session_state::reject_call(const rpc_message& message, const mcp_request& request,
                                    run_status status, error reason) {
  context.env->activity->run_refused(status);
  auto rendered =
      render_call_result(answer_of(status, std::move(reason)), context.env->config->output);
  respond(message.id, call_result(rendered, form_for(request)));
}

void mcp_session_state::start_run(const rpc_message& message, const mcp_request& request,
                                  python_call call, input_responses early) {
  const auto& env = *context.env;
  run_in_flight run;
  auto size = call.code.size();
  for (const auto& file : call.files) {
    size += file.bytes.size();
  }
  for (const auto& [key, answer] : early.answers) {
    size += answer.size();
  }
  if (!env.budget->take(size, run.held)) {
    reject_call(
        message, request, run_status::unavailable,
        {errc::overloaded, "too much is going on at once (memory budget); try again later"});
    return;
  }
  run.request = message.id;
  run.form = form_for(request);
  run.abilities = abilities_of(request);
  bool can_be_asked = run.abilities != client_abilities{};
  if (can_be_asked) {
    run.digest = call_digest(run_python_name, request.find("arguments"));
    note_abilities(run.abilities);
    run.early = std::move(early.answers);
  }
  run.progress_token = request.progress_token;
  run.log_level = request.modern ? request.log_level : log_level;
  run.since = self->clock().now();
  run.what.id = env.new_handle();
  run.what.code = std::move(call.code);
  run.what.servers = std::move(call.servers);
  run.what.timeout = call.timeout;
  run.what.files = std::move(call.files);
  run.what.owner = context.owner;
  auto who = request.modern ? read_client_info(request) : client;
  run.what.client = std::move(who.name);
  run.what.client_version = std::move(who.version);
  run.what.live = !run.progress_token.empty() || run.log_level == log_severity::debug;
  if (run.what.live || can_be_asked) {
    run.what.observer = mcp_session_actor{self};
  }
  run.what.asked_as = is_json_string(message.id) ? decode_json_string(message.id) : message.id;
  run.what.trace = trace_of(request);
  run.what.watch =
      env.activity->run_asked({run.what.id, run.what.client, run.what.servers,
                               std::string{run.what.trace.trace_id()}, !call.session.empty()});
  show_asked(run);
  auto id = run.what.id;
  requests.emplace(message.id, id);
  runs.emplace(id, std::move(run));
  progressed(id, "queued");
  if (call.session.empty()) {
    admit(id);
    return;
  }
  auto fresh = call.session == "new";
  auto configured = context.catalogue();
  auto loadable = env.config->autoload ? configured->allowed_servers() : std::vector<std::string>{};
  claim_session(id, {context.owner, fresh ? std::string{} : std::move(call.session), call.reset,
                     runs[id].what.servers, std::move(loadable),
                     deadline::at(self->clock().now() + queue_wait), std::move(configured)});
}

void mcp_session_state::claim_session(const std::string& id, session_claim claim) {
  self->request(context.sessions(), queue_wait + seconds{1}, lease_atom::value, std::move(claim))
      .then(
          [this, id](session_lease& lease) {
            auto found = runs.find(id);
            if (found == runs.end()) {
              // Cancelled while it waited.
              self->send(context.sessions(), release_atom::value, lease.handle, lease.number,
                         lease.sandbox);
              return;
            }
            found->second.what.servers = lease.servers;
            found->second.what.session = std::move(lease);
            show_session(found->second);
            admit(id);
          },
          [this, id](const caf::error& reason) {
            auto why = from_caf(reason, "wait for the session");
            auto status = status_of(why);
            failed(id, status, std::move(why));
          });
}

/// Ends the run's lease, unless its invocation has done so: a run that didn't begin leaves the
/// session as it was.
void mcp_session_state::leave_session(run_in_flight& run) {
  if (auto lease = std::exchange(run.what.session, {})) {
    self->send(context.sessions(), release_atom::value, lease->handle, lease->number,
               lease->sandbox);
  }
}

void mcp_session_state::admit(const std::string& id, bool again) {
  auto due = deadline::at(self->clock().now() + queue_wait);
  // A moment more than the deadline, so that admission itself says why.
  self->request(context.admission, queue_wait + seconds{1}, admit_atom::value, context.owner, due)
      .then([this, id](std::uint64_t ticket) { admitted(id, ticket); },
            [this, id, again](const caf::error& reason) {
              not_admitted(id, from_caf(reason, "wait for a free place to run"), again);
            });
}

void mcp_session_state::not_admitted(const std::string& id, error why, bool again) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    return;
  }
  auto status = status_of(why);
  bool waited = self->clock().now() - found->second.since >= queue_wait;
  if (why.code == errc::overloaded && context.queue_full && !waited) {
    if (context.queue_full()) {
      auto request = std::exchange(found->second.request, {});
      found->second.cancelled = true; // no result follows
      requests.erase(request);
      if (!request.empty()) {
        refuse(request, {rpc_code::internal_error, why.message, overload_data(overload_pause)});
      }
    } else if (!again) {
      admit(id, true); // there is room by now, or it is refused for another reason
      return;
    }
  }
  failed(id, status, std::move(why));
}

void mcp_session_state::admitted(const std::string& id, std::uint64_t ticket) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    // Cancelled while it waited.
    self->send(context.admission, release_atom::value, ticket);
    return;
  }
  auto& run = found->second;
  run.now = run_in_flight::stage::started;
  run.ticket = ticket;
  run.what.watch->admitted(self->clock().now() - run.since, run.what.servers);
  run.invocation = context.start(run.what);
  self->monitor(run.invocation);
  // The invocation has its own copy now.
  run.what.code = {};
  run.what.files = {};
  if (run.what.session) {
    // It hands the interpreter back; should it fail to, the session is lost.
    run.what.session->sandbox = nullptr;
  }
  run.what.observer = nullptr;
  run.held.release();
  self->request(run.invocation,
                run.what.timeout + run_allowance + context.env->bounds.question_time,
                run_atom::value)
      .then([this, id](const run_answer& answer) { finished(id, answer); },
            [this, id](const caf::error& reason) {
              auto why = from_caf(reason, "run code");
              auto status = status_of(why);
              failed(id, status, std::move(why));
            });
}

void mcp_session_state::failed(const std::string& id, run_status status, error reason) {
  if (auto found = runs.find(id); found != runs.end() && found->second.invocation) {
    // It didn't answer; its sandbox ends with it.
    self->send_exit(found->second.invocation, caf::exit_reason::user_shutdown);
  }
  auto answer = answer_of(status, std::move(reason));
  if (auto found = runs.find(id); found != runs.end()) {
    answer.duration_ms =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                       self->clock().now() - found->second.since)
                                       .count());
    note_unfinished(found->second, answer);
    tell_end(found->second, status);
  }
  finished(id, answer);
}

/// A run whose invocation never was, or never told how it ended.
void mcp_session_state::note_unfinished(const run_in_flight& run, const run_answer& answer) {
  if (!context.ledger.on()) {
    return;
  }
  ledger_run what;
  what.run = run.what.id;
  what.at = std::chrono::duration_cast<std::chrono::milliseconds>(
                context.env->wall_clock().time_since_epoch())
                .count() -
            static_cast<std::int64_t>(answer.duration_ms);
  what.owner = run.what.owner;
  what.client = run.what.client;
  what.client_version = run.what.client_version;
  what.servers = run.what.servers;
  if (!run.what.code.empty()) {
    what.code = context.ledger.kept(run.what.code);
  }
  what.duration_ms = answer.duration_ms;
  what.outcome = to_string(answer.status);
  what.error = answer.failure ? std::string{to_string(answer.failure->code)} : std::string{};
  context.ledger.record(std::move(what));
}

void mcp_session_state::finished(const std::string& id, const run_answer& answer) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    return;
  }
  auto node = runs.extract(found);
  auto& run = node.mapped();
  end_questions(id, {errc::closed, "the run is over"});
  show_end(id, answer);
  leave_session(run);
  if (run.invocation) {
    self->send(context.admission, release_atom::value, run.ticket);
    self->demonitor(run.invocation.address());
  }
  if (!run.cancelled) {
    auto rendered = render_call_result(answer, context.env->config->output, context.env->bounds,
                                       run.form.structured());
    conclude(run, call_result(rendered, run.form), answer);
  }
  if (!answer.artifacts.empty() || !answer.out_kept.uri.empty() || !answer.err_kept.uri.empty()) {
    tell_changed(&changing_lists::resources);
  }
  end_if_idle();
}

/// Gives the client the result, or keeps it until the client comes back.
void mcp_session_state::conclude(run_in_flight& run, std::string result, const run_answer& answer) {
  if (run.request.empty()) {
    keep_answer(run, std::move(result));
    return;
  }
  requests.erase(run.request);
  log_end(run, answer);
  respond(run.request, result);
}

void mcp_session_state::lost(const caf::down_msg& down) {
  for (const auto& [id, run] : runs) {
    if (run.invocation && run.invocation.address() == down.source) {
      {
        log_scope about{{id, run.what.asked_as, run.what.trace.trace_id()}};
        context.env->log->error("run {}: its actor ended: {}", id, caf::to_string(down.reason));
      }
      failed(std::string{id}, run_status::error,
             {errc::internal, "the run was lost to a fault of Bulkhead's own; see its log"});
      return;
    }
  }
}

void mcp_session_state::progressed(const std::string& id, std::string_view message) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    return;
  }
  auto& run = found->second;
  if (run.progress_token.empty() || run.request.empty()) {
    return;
  }
  run.last_progress = message;
  write_for(run.request,
            encode_notification("notifications/progress",
                                progress_params(run.progress_token, ++run.progress, message)));
  schedule_tick();
}

void mcp_session_state::wrote(const std::string& id, const std::string& text) {
  auto found = runs.find(id);
  if (found == runs.end() || found->second.request.empty()) {
    return;
  }
  auto& run = found->second;
  if (!run.progress_token.empty()) {
    write_for(run.request,
              encode_notification("notifications/progress",
                                  progress_params(run.progress_token, ++run.progress, text)));
  }
  if (run.log_level == log_severity::debug) {
    auto data =
        fmt::format(R"({{"event":"output","run":"{}","text":{}}})", run.what.id, json_quote(text));
    write_for(run.request,
              encode_notification("notifications/message", log_params(log_severity::debug, data)));
  }
}

void mcp_session_state::log_end(const run_in_flight& run, const run_answer& answer) {
  bool fine = answer.status == run_status::success;
  auto severity = fine ? log_severity::info : log_severity::warning;
  if (!run.log_level || severity < *run.log_level) {
    return;
  }
  auto data = fmt::format(R"({{"event":"run ended","run":"{}","status":"{}","durationMs":{}}})",
                          run.what.id, to_string(answer.status), answer.duration_ms);
  write_for(run.request, encode_notification("notifications/message", log_params(severity, data)));
}

/// Something served besides isn't watched.
void mcp_session_state::tell_end(const run_in_flight& run, run_status status) const {
  if (run.what.watch) {
    run.what.watch->ended(status, self->clock().now() - run.since);
  }
}

void mcp_session_state::cancel_run(std::map<std::string, run_in_flight>::iterator found) {
  auto& run = found->second;
  end_questions(found->first, {errc::cancelled, "the client cancelled the run"});
  run.cancelled = true;
  run.request.clear();
  states.erase(run.state);
  if (run.now == run_in_flight::stage::queued) {
    note_unfinished(run, answer_of(run_status::cancelled, {errc::cancelled, {}}));
    tell_end(run, run_status::cancelled);
    show_end(found->first, answer_of(run_status::cancelled, {errc::cancelled, {}}));
    leave_session(run);
    runs.erase(found);
    return;
  }
  // Its place is free once it has really ended.
  self->send<caf::message_priority::high>(run.invocation, cancel_atom::value);
}

/// Not by its client, which waits for an answer.
void mcp_session_state::cancel_for_owner(const std::string& id) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    return;
  }
  end_questions(id, {errc::cancelled, "the run was cancelled"});
  if (found->second.now == run_in_flight::stage::queued) {
    failed(std::string{id}, run_status::cancelled,
           {errc::cancelled, "cancelled on the web page before it began"});
    return;
  }
  self->send<caf::message_priority::high>(found->second.invocation, cancel_atom::value);
}

void mcp_session_state::schedule_tick() {
  if (!ticking) {
    ticking = true;
    self->delayed_send(self, progress_interval, tick_atom::value);
  }
}

void mcp_session_state::tick() {
  ticking = false;
  auto time = self->clock().now();
  if (now == phase::stopping && time >= stop_due) {
    context.env->log->warn("session: {} cancelled runs didn't end in time", runs.size());
    end();
    return;
  }
  for (auto& [id, run] : runs) {
    if (!run.progress_token.empty() && !run.request.empty()) {
      auto elapsed = std::chrono::duration_cast<seconds>(time - run.since);
      write_for(run.request,
                encode_notification(
                    "notifications/progress",
                    progress_params(run.progress_token, ++run.progress,
                                    fmt::format("{}, {} s", run.last_progress, elapsed.count()))));
      schedule_tick();
    }
  }
}

} // namespace bulkhead
