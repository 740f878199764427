#include "actors/mcp_client.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <caf/all.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "actors/io/process_table.hpp"

namespace bulkhead {

namespace {

bool names_variable(const std::string& assignment, std::string_view name) {
  return assignment.size() > name.size() && assignment.starts_with(name) &&
         assignment[name.size()] == '=';
}

void set_variable(std::vector<std::string>& env, std::string_view name, std::string_view value) {
  auto found = std::find_if(env.begin(), env.end(), [&](const std::string& assignment) {
    return names_variable(assignment, name);
  });
  auto assignment = fmt::format("{}={}", name, value);
  if (found == env.end()) {
    env.push_back(std::move(assignment));
  } else {
    *found = std::move(assignment);
  }
}

/// What mustn't be told of an entry, by names that don't matter.
std::map<std::string, std::string> secrets_of(const server_entry& entry) {
  auto result = entry.env;
  for (const auto& [name, value] : entry.headers) {
    result.emplace("header " + name, value);
    // "Bearer SECRET"
    if (auto space = value.find(' '); space != std::string::npos) {
      result.emplace("credentials " + name, value.substr(space + 1));
    }
  }
  return result;
}

} // namespace

process_spec upstream_process(const environment& env, const server_entry& entry,
                              const std::string& marker) {
  process_spec spec;
  spec.argv.push_back(entry.command);
  spec.argv.insert(spec.argv.end(), entry.args.begin(), entry.args.end());
  spec.env = minimal_environment(env);
  for (const auto& [name, value] : entry.env) {
    set_variable(spec.env, name, value);
  }
  set_variable(spec.env, io::child_marker, marker);
  set_variable(spec.env, "BULKHEAD_DEPTH", "1");
  spec.cwd = entry.cwd.empty() ? env.home : entry.cwd;
  return spec;
}

mcp_client_state::mcp_client_state(mcp_client_impl_actor::pointer self) : self{self} {}

mcp_client_state::time_point mcp_client_state::now() {
  return self->clock().now();
}

std::string mcp_client_state::subject() const {
  return fmt::format("MCP server \"{}\"", entry.name);
}

std::string mcp_client_state::last_words() const {
  auto text = stderr_end ? stderr_end->text() : std::string{};
  if (serves_several && !text.empty()) {
    // It may tell of one tenant what others mustn't read.
    env->log->warn("{}: the end of its stderr:\n{}", subject(), text);
    return "; the server's log has the end of its stderr";
  }
  return text.empty() ? std::string{} : "; the end of its stderr:\n" + text;
}

void mcp_client_state::note_failure(const error& reason) {
  last_error = reason.message;
  env->log->warn("{}", reason.message);
}

/// The earliest time at which something is due.
std::optional<mcp_client_state::time_point> mcp_client_state::next_due() {
  std::optional<time_point> earliest;
  auto consider = [&](const std::optional<time_point>& when) {
    if (when && (!earliest || *when < *earliest)) {
      earliest = when;
    }
  };
  if (auto first = calls.first_due()) {
    consider(first->first);
  }
  for (const auto& waiter : waiters) {
    consider(waiter.due);
  }
  consider(start_due);
  consider(probe_due);
  consider(step_due);
  consider(exit_due);
  if (list) {
    consider(list->due);
  }
  if (!again.empty()) {
    consider(again.begin()->first);
  }
  if (current == phase::idle && wanted()) {
    consider(std::max(restarts.next_start(), now()));
  }
  return earliest;
}

/// One timer serves all deadlines; one that comes too early does no harm.
void mcp_client_state::arm() {
  auto due = next_due();
  if (due && (!armed || *due < *armed)) {
    armed = due;
    self->scheduled_send(mcp_client_impl_actor{self}, *due, tick_atom::value);
  }
}

void mcp_client_state::tick() {
  if (armed && now() >= *armed) {
    armed.reset();
  }
  expire_calls();
  expire_documents();
  make_due_calls_again();
  send_waiting();
  auto is_due = [this](const std::optional<time_point>& when) { return when && now() >= *when; };
  if (is_due(step_due)) {
    advance_stop();
  }
  if (is_due(exit_due)) {
    output_lost();
  }
  if (is_due(probe_due)) {
    probe_due.reset();
    send_initialize();
  }
  if (starting() && is_due(start_due)) {
    start_failed(
        {errc::server_failed,
         fmt::format("start {}: it wasn't ready within {} s; see \"startTimeout\" in {}{}",
                     subject(), entry.start_timeout.count() / 1000.0, entry.source, last_words())});
  }
  if (list && is_due(list->due)) {
    fail_listing({errc::timeout, "no answer before the deadline"});
  }
  ensure_started();
  arm();
}

mcp_client_impl_actor::behavior_type mcp_client_state::make_behavior() {
  self->set_exit_handler([this](caf::exit_msg& message) {
    abandon({errc::closed, fmt::format("{} is being stopped", subject())});
    if (child) {
      self->send(processes, signal_atom::value, *child, std::int32_t{SIGKILL});
      caf::anon_send(processes, kill_marked_atom::value, marker);
    }
    confirm_stop();
    self->quit(message.reason);
  });
  self->set_exception_handler([this](std::exception_ptr&) -> caf::error {
    abandon({errc::internal, fmt::format("the client of {} failed", subject())});
    return caf::exit_reason::unhandled_exception;
  });
  return {
      [this](child_output& output) { take_output(output); },
      [this](const child_written& written) {
        if (child && written.id == *child) {
          unwritten -= std::min(unwritten, written.bytes);
          out->acknowledge(written.bytes);
          pump();
        }
      },
      [this](const child_exited& exit) { child_ended(exit); },
      [this](refuse_atom, std::uint64_t request, error& reason) {
        refused(request, std::move(reason));
      },
      [this](documents_atom, deadline due) { return documents_for(due); },
      [this](call_atom, tool_call& request) { return call(request); },
      [this](cancel_atom, std::uint64_t id) { cancel(id); },
      [this](status_atom) { return status(); },
      [this](stop_atom) { return stop(); },
      [this](tick_atom) { tick(); },
  };
}

mcp_client_impl_actor::behavior_type
mcp_client(mcp_client_impl_actor::stateful_pointer<mcp_client_state> self, environment_ptr env,
           child_host_actor processes, server_entry entry) {
  auto& state = self->state;
  state.env = std::move(env);
  state.processes = std::move(processes);
  state.entry = std::move(entry);
  state.secrets = upstream::secret_filter{secrets_of(state.entry)};
  return state.make_behavior();
}

} // namespace bulkhead
