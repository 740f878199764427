#include "actors/invocation.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/errors.hpp"
#include "actors/log_scope.hpp"
#include "actors/python_sessions.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// The catalogue is in memory; an answer takes microseconds.
constexpr auto registry_patience = 10s;

/// What the code of a session has to end in once it is interrupted; that raises KeyboardInterrupt
/// at once, so that this is for its `finally` clauses.
constexpr auto interrupt_grace = 2s;

/// The budget of one run. A result is charged twice for a moment, as it goes from one actor to the
/// next; the reserve is for that.
std::shared_ptr<memory_budget> run_budget(const environment& env) {
  auto most = env.bounds.run_memory;
  return std::make_shared<memory_budget>(2 * most, most, env.budget);
}

server_brief brief_of(const server_entry& entry) {
  return {entry.name, entry.alias, entry.description};
}

} // namespace

invocation_state::invocation_state(invocation_impl_actor::pointer self)
    : self{self}, out{limits{}.answer_stream}, err{limits{}.answer_stream} {}

void invocation_state::be_watched() {
  if (!request.watch) {
    request.watch = context.env->activity->run_asked({request.id, request.client, request.servers,
                                                      std::string{request.trace.trace_id()},
                                                      request.session.has_value()});
    request.watch->admitted({}, request.servers);
  }
}

caf::result<run_answer> invocation_state::run() {
  if (now != phase::fresh) {
    return to_caf(errc::internal, "a run can be started only once");
  }
  now = phase::booting;
  began = self->clock().now();
  if (context.ledger.on()) {
    ran.at = std::chrono::duration_cast<std::chrono::milliseconds>(
                 context.env->wall_clock().time_since_epoch())
                 .count();
    ran.code = context.ledger.kept(request.code);
  }
  promise = self->make_response_promise<run_answer>();
  log_begin();
  report("booting");
  self->request(context.registry, registry_patience, catalogue_atom::value)
      .then([this](const catalogue_ptr& all) { begin(all); },
            [this](const caf::error& reason) {
              cut_short(run_status::unavailable, from_caf(reason, "read the server catalogue"));
            });
  return promise;
}

void invocation_state::begin(const catalogue_ptr& all) {
  if (now != phase::booting) {
    return;
  }
  catalogue = all;
  // The one place where a run's rights are made: what it asked for, cut down by policy.
  auto servers = request.servers;
  auto loadable = loadable_servers();
  servers.insert(servers.end(), loadable.begin(), loadable.end());
  rights = run_rights{catalogue->rules, std::move(servers)};
  if (request.session && request.session->made_under) {
    rights.narrow(request.session->made_under->rules);
  }
  what = sandbox_run{request.id, std::move(request.code), {}, {}, budget,
                     {},         std::move(request.files)};
  if (request.session) {
    what.keep = context.env->config->session_idle;
  }
  for (const auto& entry : catalogue->servers) {
    if (!allows_server(catalogue->rules, entry.name).allowed) {
      continue;
    }
    what.discovered.push_back(brief_of(entry));
    if (!rights.server(entry.name).allowed) {
      continue;
    }
    auto& to = links[entry.name];
    to.brief = brief_of(entry);
    to.named = std::find(request.servers.begin(), request.servers.end(), entry.name) !=
               request.servers.end();
    if (to.named) {
      what.servers.push_back(to.brief);
      answer.servers.push_back(entry.name);
    }
  }
  if (request.session) {
    enter_session();
  }
  send_to(goes_on() ? request.session->sandbox : context.make_sandbox(true));
  // Servers start while the container boots.
  for (auto& [server, to] : links) {
    if (to.named) {
      connect(to);
    }
  }
}

/// Those that the code may call without their having been asked for. A session's are fixed.
std::vector<std::string> invocation_state::loadable_servers() const {
  if (request.session) {
    return request.session->loadable;
  }
  return context.env->config->autoload ? catalogue->allowed_servers() : std::vector<std::string>{};
}

void invocation_state::send_to(sandbox_actor which) {
  sandbox = std::move(which);
  self->monitor(sandbox);
  self->send(sandbox, execute_atom::value, what, sandbox_owner_actor{self});
}

/// Only now that the run begins may it cost a session what it holds.
void invocation_state::enter_session() {
  auto& lease = *request.session;
  if (lease.reset && lease.sandbox) {
    self->send(lease.sandbox, end_atom::value);
    lease.sandbox = nullptr;
  }
  self->send(context.sessions(), taken_atom::value);
}

/// Does this run go on in an interpreter that ran code before?
bool invocation_state::goes_on() const {
  return request.session && request.session->sandbox;
}

void invocation_state::try_another(error reason) {
  if (now == phase::booting && goes_on()) {
    cut_short(run_status::session_lost, no_such_session());
  } else if (now == phase::booting && !std::exchange(tried_another, true)) {
    send_to(context.make_sandbox(false));
  } else {
    cut_short(run_status::error, std::move(reason));
  }
}

void invocation_state::up() {
  if (now != phase::booting) {
    return;
  }
  what = {};
  now = phase::running;
  due = self->clock().now() + request.timeout;
  self->delayed_send<caf::message_priority::high>(self, request.timeout, tick_atom::value);
  request.watch->code_runs();
  report("running");
}

void invocation_state::finished(guest_done& done) {
  if (now != phase::running && now != phase::interrupting) {
    return;
  }
  session_kept = request.session.has_value();
  answer.exit_code = done.exit_code;
  answer.result_repr = std::move(done.result_repr);
  answer.result_json = std::move(done.result_json);
  answer.exception = std::move(done.exception);
  if (now == phase::interrupting) {
    stopped_for.message += "; it was interrupted, and the session goes on with what it holds";
    cut_short(stopped_as, std::move(stopped_for));
    return;
  }
  finish(done.exit_code == 0 && !answer.exception ? run_status::success : run_status::error);
}

void invocation_state::lost(sandbox_lost& loss) {
  if (now == phase::over) {
    return;
  }
  switch (loss.reason.code) {
  case errc::closed:
    // Which is what it means to the client when no other takes the run.
    loss.reason.code = errc::runtime_lost;
    try_another(std::move(loss.reason));
    return;
  case errc::none:
    // os._exit and the like: the program ended its process without a word.
    answer.exit_code = loss.exit_code;
    if (loss.exit_code == 0 && !request.session) {
      finish(run_status::success);
    } else {
      cut_short(run_status::error,
                {errc::runtime_lost,
                 fmt::format("the process ended itself with exit code {}", loss.exit_code)});
    }
    return;
  case errc::out_of_memory:
    answer.exit_code = loss.exit_code;
    cut_short(run_status::out_of_memory, std::move(loss.reason));
    return;
  case errc::unavailable:
    cut_short(run_status::unavailable, std::move(loss.reason));
    return;
  default:
    cut_short(run_status::error, std::move(loss.reason));
  }
}

void invocation_state::cut_short(run_status status, error reason) {
  if (now != phase::over) {
    answer.failure = std::move(reason);
    finish(status);
  }
}

void invocation_state::stop_code(run_status status, error reason) {
  if (!request.session || now == phase::fresh || (now == phase::booting && !goes_on())) {
    cut_short(status, std::move(reason));
  } else if (now == phase::booting || now == phase::running) {
    now = phase::interrupting;
    stopped_as = status;
    stopped_for = std::move(reason);
    due = self->clock().now() + interrupt_grace;
    self->send<caf::message_priority::high>(sandbox, interrupt_atom::value);
    self->delayed_send<caf::message_priority::high>(self, interrupt_grace, tick_atom::value);
  }
}

/// Hands the interpreter back, or tells that it is lost.
void invocation_state::leave_session() {
  const auto& lease = *request.session;
  if (session_kept) {
    answer.session = lease.handle;
  } else if (answer.failure && answer.status != run_status::session_lost &&
             (goes_on() || due != std::chrono::steady_clock::time_point{})) {
    answer.failure->message += "; the session and what it held are lost";
  }
  self->send(context.sessions(), release_atom::value, lease.handle, lease.number,
             session_kept ? sandbox : sandbox_actor{});
}

void invocation_state::finish(run_status status) {
  now = phase::over;
  log_tallies();
  answer.status = status;
  if (request.session) {
    leave_session();
  }
  while (!calls.empty()) {
    const auto& [id, call] = *calls.begin();
    self->send(call.client, cancel_atom::value, call.call);
    note_answered(id, status == run_status::timeout ? to_string(errc::timeout)
                                                    : to_string(errc::cancelled));
  }
  approvals.clear();
  withdraw_questions();
  answer.out = out.take();
  answer.err = err.take();
  answer.duration_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(self->clock().now() - began).count());
  log_end();
  note_run();
  request.watch->ended(status, self->clock().now() - began);
  if (sandbox && !session_kept) {
    self->send(sandbox, end_atom::value);
  }
  keep_what_is_not_shown();
  deliver_when_kept();
}

void invocation_state::take_output(guest_output& output) {
  if (now == phase::over) {
    return;
  }
  // Until whoever gets it, store and observer, has dealt with it; this function's own hold is one.
  auto holders = std::make_shared<int>(1);
  auto let_go = [this, holders] {
    if (--*holders == 0) {
      output_dealt_with();
    }
  };
  ++outputs_shown;
  const auto pending = store_pending;
  keep_output(output, let_go);
  *holders += store_pending > pending ? 1 : 0;
  if (request.output) {
    ++*holders;
    self->request(request.output, request.timeout, std::move(output))
        .then([let_go](caf::ok_atom) { let_go(); }, [let_go](const caf::error&) { let_go(); });
  }
  let_go();
}

void invocation_state::output_dealt_with() {
  auto events = --outputs_shown == 0 ? 1 + std::exchange(credit_withheld, 0) : 1;
  if (now != phase::over) {
    // Else the sandbox has taken it back itself, and may be at another run.
    self->send(sandbox, credit_atom::value, events);
  }
}

void invocation_state::dealt_with_call() {
  // Credit is given in the order of the events: that for a small call would else come back as that
  // for a large output before it, and an observer that is slow would be no brake.
  if (outputs_shown > 0) {
    ++credit_withheld;
  } else {
    self->send(sandbox, credit_atom::value, std::uint32_t{1});
  }
}

void invocation_state::time_is_up() {
  if (self->clock().now() < due) {
    // Interrupted for another reason, and the grace for that isn't over; or the clock stood still.
    return;
  }
  if (now == phase::running && questions_open > 0) {
    return;
  }
  if (now == phase::interrupting) {
    stopped_for.message += "; it didn't end when it was interrupted, and was killed";
    cut_short(stopped_as, std::move(stopped_for));
    return;
  }
  auto text = fmt::format("the code was stopped after its {} s were up",
                          std::chrono::duration<double>{request.timeout}.count());
  if (auto what = waited_for(); !what.empty()) {
    text += fmt::format("; it waited for {}: a longer timeout gives more time", what);
  }
  stop_code(run_status::timeout, {errc::timeout, std::move(text)});
}

void invocation_state::report(std::string message) {
  if (request.observer) {
    self->send(request.observer, run_progress{request.id, std::move(message)});
  }
}

invocation_impl_actor::behavior_type invocation_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) {
    if (down.source == sandbox.address()) {
      try_another({errc::runtime_lost, "the sandbox failed; see the log"});
    }
  });
  return {
      [this](const sandbox_up&) { up(); },
      [this](guest_output& output) { take_output(output); },
      [this](guest_call& call) {
        dealt_with_call();
        take_call(call);
      },
      [this](const guest_cancel& cancel) {
        dealt_with_call();
        cancel_call(cancel.id);
      },
      [this](const refused_call& call) {
        dealt_with_call();
        if (++calls_refused <= most_lines) {
          log_scope about{ids()};
          context.env->log->info("run {}: call {} refused: {}", request.id, call.id,
                                 call.reason.message);
        }
        note_refused(call);
      },
      [this](guest_artifact& artifact) { take_artifact(artifact); },
      [this](guest_done& done) { finished(done); },
      [this](sandbox_lost& loss) { lost(loss); },
      [this](run_atom) { return run(); },
      [this](cancel_atom) {
        stop_code(run_status::cancelled, {errc::cancelled, "the client cancelled the run"});
      },
      [this](tick_atom) { time_is_up(); },
      [this](const tool_progress& progress) { tell_progress(progress); },
      [this](server_question& question) { return pass_on(question); },
      [this](tick_atom, run_atom) { tell_latest(); },
  };
}

invocation_impl_actor::behavior_type
invocation(invocation_impl_actor::stateful_pointer<invocation_state> self,
           invocation_context context, run_request request) {
  self->state.out = output_capture{context.env->bounds.answer_stream};
  self->state.err = output_capture{context.env->bounds.answer_stream};
  self->state.budget = run_budget(*context.env);
  self->state.context = std::move(context);
  self->state.request = std::move(request);
  self->state.be_watched();
  return self->state.make_behavior();
}

} // namespace bulkhead
