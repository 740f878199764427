#include "actors/mcp_client.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <caf/all.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/errors.hpp"

/// The server's process: its start, its bytes, its end.
namespace bulkhead {

namespace {

using namespace std::chrono_literals;

// The end of a process: the whole takes less than four seconds.
constexpr auto close_grace = 1s;
constexpr auto terminate_grace = 1500ms;
constexpr auto kill_grace = 500ms;
constexpr auto reap_time = 800ms;

/// A process that ends closes its stdout a moment before.
constexpr auto exit_grace = 1s;

/// Credit is given back in pieces, to spare messages.
constexpr std::uint64_t credit_step = 256 * kibibyte;

/// Unfinished lines up to this are not worth charging.
constexpr std::size_t free_partial = 64 * kibibyte;

std::string how_it_ended(const child_exited& exit) {
  return exit.signal != 0 ? fmt::format("was killed by signal {}", exit.signal)
                          : fmt::format("exited with code {}", exit.exit_code);
}

error spawn_failure(const server_entry& entry, const error& cause) {
  auto start = fmt::format("start MCP server \"{}\"", entry.name);
  if (entry.transport != server_transport::stdio) {
    return {cause.code, fmt::format("{}: {}", start, cause.message)};
  }
  if (cause.code != errc::not_found) {
    return {errc::server_failed,
            fmt::format("{}: {}; if need be, correct \"command\" or \"cwd\" in {}", start,
                        cause.message, entry.source)};
  }
  auto what = entry.command.find('/') == std::string::npos
                  ? fmt::format("command \"{}\" not found on PATH", entry.command)
                  : cause.message;
  return {errc::server_failed, fmt::format("{}: {}; install it or correct \"command\" in {}", start,
                                           what, entry.source)};
}

/// What a shell or npx says of a command that isn't there: trying once more is no use.
bool command_missing(const child_exited& exit) {
  return exit.exit_code == 126 || exit.exit_code == 127;
}

} // namespace

/// Starts the server if somebody waits for it and nothing speaks against it.
void mcp_client_state::ensure_started() {
  if (current != phase::idle || told_to_stop || !wanted()) {
    return;
  }
  if (restarts.used_up(now())) {
    fail_waiting(budget_refusal());
  } else if (now() >= restarts.next_start()) {
    spawn();
  }
}

error mcp_client_state::budget_refusal() {
  auto left = std::chrono::ceil<std::chrono::seconds>(restarts.window_end() - now());
  return {
      errc::server_failed,
      fmt::format("{} failed {} times in ten minutes and is left alone for another {}; the last "
                  "failure: {}",
                  subject(), restarts.failures(), left, last_error)};
}

void mcp_client_state::spawn() {
  if (restarts.failures() > 0 && !skip_probe) {
    env->activity->upstream_restarted(entry.name);
  }
  current = phase::spawning;
  started_at = now();
  start_due = start_due.value_or(started_at + entry.start_timeout);
  marker = env->instance + "/" + env->new_handle();
  lines.emplace(env->bounds.line);
  stderr_end.emplace(env->bounds.stderr_tail, secrets);
  out.emplace(env->bounds.write_ahead, env->budget);
  unwritten = 0;
  owed_credit[0] = owed_credit[1] = 0;
  discover_sent = false;
  discover_request = initialize_request = 0;
  probe_due.reset();
  late_modern.reset();
  initialize_failure.reset();
  env->log->info("{}: {}", subject(),
                 remote() ? "connecting" : fmt::format("starting \"{}\"", entry.command));
  self->request(processes, entry.start_timeout, spawn_atom::value,
                upstream_process(*env, entry, marker), child_owner_actor{self})
      .then(
          [this](const child_started& started) {
            child = started.id;
            current == phase::stopping ? begin_stop() : begin_handshake();
            arm();
          },
          [this](const caf::error& reason) {
            auto cause = from_caf(reason, "process host");
            if (current == phase::stopping) {
              process_is_gone();
              return;
            }
            if (cause.code == errc::timeout) {
              // It may have been started after all.
              caf::anon_send(processes, kill_marked_atom::value, marker);
            }
            start_failed(spawn_failure(entry, cause));
          });
}

/// Whoever waits for the start learns why it failed; the next request starts afresh.
void mcp_client_state::start_failed(const error& reason) {
  note_failure(reason);
  start_due.reset();
  if (child) {
    if (!remote()) {
      restarts.failed(now(), 0s);
    }
    fail_waiting(reason);
    begin_stop();
  } else {
    // Nothing ran, so there is nothing to restrain.
    fail_waiting(reason);
    process_is_gone();
  }
}

void mcp_client_state::child_ended(const child_exited& exit) {
  if (!child || exit.id != *child) {
    return;
  }
  child.reset();
  exit_due.reset();
  if (current == phase::stopping) {
    reap();
    return;
  }
  if (remote()) {
    connection_ended();
    return;
  }
  // Descendants may have left the process group.
  caf::anon_send(processes, kill_marked_atom::value, marker);
  if (starting() && discover_request != 0 && !command_missing(exit)) {
    // Some servers end at an unknown first request: once more, without it.
    skip_probe = true;
    current = phase::idle;
    spawn();
    return;
  }
  bool was_ready = current == phase::ready;
  error reason{errc::server_failed,
               fmt::format("{} {} {}{}", subject(), how_it_ended(exit),
                           was_ready ? "while it was in use" : "before it was ready",
                           last_words())};
  note_failure(reason);
  restarts.failed(now(), was_ready ? now() - started_at : 0s);
  skip_probe = false;
  abandon(reason);
  process_is_gone();
}

/// Answers all who wait and forgets what was known of the process.
void mcp_client_state::abandon(const error& reason) {
  list.reset();
  fail_waiting(reason);
}

/// Without its stdout a server can't answer any more, though it may live on: see `output_lost`.
void mcp_client_state::output_ended() {
  if (current != phase::stopping) {
    exit_due = now() + exit_grace;
    arm();
  }
}

/// Its stdout is closed and it hasn't ended: what is said of a server that died holds for this one.
void mcp_client_state::output_lost() {
  exit_due.reset();
  if (starting() && discover_request != 0) {
    // As for one that ends at an unknown first request; whoever waits goes on waiting.
    skip_probe = true;
    begin_stop();
    return;
  }
  bool was_ready = current == phase::ready;
  error reason{errc::server_failed,
               fmt::format("{} closed its stdout {} and is ended, since it can't answer{}",
                           subject(), was_ready ? "while it was in use" : "before it was ready",
                           last_words())};
  note_failure(reason);
  restarts.failed(now(), was_ready ? now() - started_at : 0s);
  skip_probe = false;
  abandon(reason);
  begin_stop();
}

void mcp_client_state::take_output(child_output& output) {
  if (output.bytes.empty()) {
    if (child && output.id == *child && output.stream == stream_id::out) {
      output_ended();
    }
    return;
  }
  if (child && output.id == *child) {
    if (output.stream == stream_id::err) {
      stderr_end->append(output.bytes);
    } else if (current != phase::stopping) {
      upstream::lines::sink sink{
          [this](std::string_view line) { take_line(line); },
          [this](errc reason, std::string_view head, std::string_view tail) {
            take_unreadable(reason,
                            reason == errc::too_large
                                ? fmt::format("its answer is over the limit of {} bytes a line",
                                              env->bounds.line)
                                : "there is no memory for its answer now; try again later",
                            head, tail);
          }};
      lines->feed(output.bytes, sink);
      send_waiting();
      charge_partial_line();
      pump();
    }
    give_credit(output.stream, output.bytes.size());
  }
}

void mcp_client_state::give_credit(stream_id stream, std::uint64_t bytes) {
  auto& owed = owed_credit[stream == stream_id::out ? 0 : 1];
  owed += bytes;
  if (owed >= std::min<std::uint64_t>(credit_step, env->bounds.read_ahead / 2) && child) {
    self->send(processes, credit_atom::value, *child, stream, std::exchange(owed, 0));
  }
}

/// A line that grows is charged to the memory budget; without memory for it, it is dropped.
void mcp_client_state::charge_partial_line() {
  auto held = lines->held();
  if (held <= free_partial) {
    partial_line.release();
  } else if (held > partial_line.bytes()) {
    auto more = held - partial_line.bytes() + free_partial;
    if (!env->budget->take(more, partial_line)) {
      partial_line.release();
      lines->drop_line(errc::overloaded);
    }
  }
}

/// False when there is no memory for it.
bool mcp_client_state::write(std::string line) {
  auto size = line.size();
  if (!out->push(std::move(line))) {
    return false;
  }
  unwritten += size;
  pump();
  return true;
}

/// Answers a request of the server. One that doesn't read what it asked for gets no more of it.
void mcp_client_state::reply(std::string line) {
  if (unwritten <= env->bounds.write_ahead) {
    write(std::move(line));
  }
}

void mcp_client_state::pump() {
  if (!child) {
    return;
  }
  out->pump([this](std::string bytes) {
    self->send(processes, write_atom::value, *child, std::move(bytes));
  });
}

/// Ends the process: stdin's end first, as MCP asks for, then signals.
void mcp_client_state::begin_stop() {
  current = phase::stopping;
  exit_due.reset();
  start_due.reset();
  probe_due.reset();
  if (!child) {
    // Being spawned; goes on when the process host has answered.
    return;
  }
  self->send(processes, close_input_atom::value, *child);
  step = stop_step::input_closed;
  step_due = now() + close_grace;
  arm();
}

void mcp_client_state::advance_stop() {
  switch (step) {
  case stop_step::input_closed:
    self->send(processes, signal_atom::value, *child, std::int32_t{SIGTERM});
    step = stop_step::terminated;
    step_due = now() + terminate_grace;
    break;
  case stop_step::terminated:
    self->send(processes, signal_atom::value, *child, std::int32_t{SIGKILL});
    step = stop_step::killed;
    step_due = now() + kill_grace;
    break;
  case stop_step::killed:
    env->log->error("{}: its process group survives SIGKILL", subject());
    child.reset();
    reap();
    break;
  case stop_step::none:
  case stop_step::reaping:
    break;
  }
}

/// Kills descendants that left the process group.
void mcp_client_state::reap() {
  step = stop_step::reaping;
  step_due.reset();
  self->request(processes, reap_time, kill_marked_atom::value, marker)
      .then([this](std::uint32_t) { process_is_gone(); },
            [this](const caf::error& reason) {
              env->log->warn("{}: {}", subject(),
                             from_caf(reason, "end what it left behind").message);
              process_is_gone();
            });
}

void mcp_client_state::process_is_gone() {
  current = phase::idle;
  step = stop_step::none;
  start_due.reset();
  probe_due.reset();
  partial_line.release();
  out.reset();
  lines.reset();
  again.clear();
  calls.forget_abandoned();
  documents_changed = true;
  if (documents) {
    documents->outdated.set();
  }
  if (told_to_stop) {
    confirm_stop();
    self->quit();
    return;
  }
  ensure_started();
  arm();
}

void mcp_client_state::confirm_stop() {
  for (auto& promise : stop_promises) {
    promise.deliver(caf::ok_atom::value);
  }
  stop_promises.clear();
}

caf::result<caf::ok_atom> mcp_client_state::stop() {
  auto promise = self->make_response_promise<caf::ok_atom>();
  stop_promises.push_back(promise);
  told_to_stop = true;
  abandon({errc::closed, fmt::format("{} is being stopped", subject())});
  if (current == phase::idle) {
    process_is_gone();
  } else if (current != phase::stopping) {
    begin_stop();
  }
  return promise;
}

} // namespace bulkhead
