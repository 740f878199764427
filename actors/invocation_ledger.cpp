// What the ledger gets of a run: itself, and each tool call that its code made, whatever became of
// it.

#include <utility>

#include <caf/all.hpp>

#include "actors/activity.hpp"
#include "actors/invocation.hpp"
#include "protocol/content_digest.hpp"
#include "protocol/json_scan.hpp"

namespace bulkhead {

namespace {

/// Calls of one run from which on only those are noted one by one that reach their server: code
/// could hide these among any number of others. The run's record counts all.
constexpr std::uint64_t most_noted = 10'000;

std::int64_t milliseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// Does a CallToolResult say that the tool failed? Few do, so the text is scanned only if it may.
bool tells_error(std::string_view result, const limits& bounds) {
  if (result.find("\"isError\"") == std::string_view::npos ||
      result.find("true") == std::string_view::npos) {
    return false;
  }
  auto outline = scan_json(result, {bounds.line, bounds.json_depth, bounds.json_nodes});
  return outline && outline->find("isError") == "true";
}

} // namespace

void invocation_state::note_call(const guest_call& call) {
  if (!context.ledger.on() || call.kind != guest_call_kind::call_tool) {
    return;
  }
  ++ran.calls;
  ledger_call what;
  what.run = request.id;
  what.at = milliseconds_of(context.env->wall_clock());
  what.owner = request.owner;
  what.server = call.server;
  what.tool = call.tool;
  if (ran.calls <= most_noted) {
    what.arguments = context.ledger.kept(call.arguments);
  }
  noted.insert_or_assign(call.id, noted_call{std::move(what), self->clock().now()});
}

/// The call goes to its server.
void invocation_state::note_sent(const guest_call& call) {
  if (auto found = noted.find(call.id); found != noted.end()) {
    found->second.sent = true;
    if (ran.calls > most_noted) {
      found->second.what.arguments = context.ledger.kept(call.arguments);
    }
  }
}

/// Names as the server has them, and the rule of policy that has a say.
void invocation_state::note_tool(std::uint64_t call, const std::string& server,
                                 const std::string& tool, const std::string& rule) {
  if (auto found = noted.find(call); found != noted.end()) {
    found->second.what.server = server;
    found->second.what.tool = tool;
    found->second.what.rule = rule;
  }
}

void invocation_state::note_end(std::uint64_t call, std::string_view outcome,
                                std::uint64_t result_bytes) {
  note_answered(call, outcome);
  auto found = noted.extract(call);
  if (!found) {
    return;
  }
  auto& [what, since, sent] = found.mapped();
  if (ran.calls > most_noted && !sent) {
    return;
  }
  what.outcome = outcome;
  what.result_bytes = result_bytes;
  what.duration_us = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(self->clock().now() - since).count());
  context.ledger.record(std::move(what));
}

void invocation_state::note_result(std::uint64_t call, std::string_view result) {
  if (noted.contains(call) || calls.contains(call)) {
    note_end(call, tells_error(result, context.env->bounds) ? "tool_error" : "success",
             result.size());
  }
}

/// The call's server has answered, or nobody waits for it any more.
void invocation_state::note_answered(std::uint64_t call, std::string_view outcome) {
  if (auto sent = calls.extract(call)) {
    const auto& [to, tool, client, serial, since] = sent.mapped();
    context.env->activity->tool_call_ended(to->brief.name, outcome, self->clock().now() - since);
  }
}

/// A frame from which neither server nor tool could be read.
void invocation_state::note_refused(const refused_call& call) {
  if (!context.ledger.on() || calls_refused > most_lines) {
    return;
  }
  ledger_call what;
  what.run = request.id;
  what.at = milliseconds_of(context.env->wall_clock());
  what.owner = request.owner;
  what.outcome = to_string(call.reason.code);
  context.ledger.record(std::move(what));
}

void invocation_state::note_run() {
  if (!context.ledger.on()) {
    return;
  }
  auto unfinished =
      answer.status == run_status::timeout ? to_string(errc::timeout) : to_string(errc::cancelled);
  while (!noted.empty()) {
    note_end(noted.begin()->first, unfinished);
  }
  ran.run = request.id;
  ran.owner = request.owner;
  ran.client = request.client;
  ran.client_version = request.client_version;
  if (request.session) {
    ran.session = session_name(request.session->handle);
  }
  ran.servers = answer.servers;
  ran.duration_ms = answer.duration_ms;
  ran.outcome = to_string(answer.status);
  ran.error = answer.failure     ? std::string{to_string(answer.failure->code)}
              : answer.exception ? answer.exception->type
                                 : std::string{};
  context.ledger.record(std::move(ran));
}

} // namespace bulkhead
