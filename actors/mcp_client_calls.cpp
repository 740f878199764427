#include "actors/mcp_client.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/errors.hpp"

/// Tool calls: from the request to the answer.
namespace bulkhead {

namespace {

/// Cancels that are remembered for calls that are still on their way.
constexpr std::size_t early_cancels = 256;

/// What a waiting call costs besides its arguments.
constexpr std::size_t call_overhead = 512;

std::string about(const std::string& tool, const std::string& server) {
  return fmt::format("call tool \"{}\" of MCP server \"{}\"", tool, server);
}

} // namespace

caf::result<std::string> mcp_client_state::call(tool_call& request) {
  auto what = about(request.tool, entry.name);
  if (told_to_stop) {
    return to_caf(errc::closed, what + ": the server is being stopped");
  }
  auto early = std::find(cancelled_early.begin(), cancelled_early.end(), request.id);
  if (early != cancelled_early.end()) {
    cancelled_early.erase(early);
    return to_caf(errc::cancelled, what + ": cancelled by the caller");
  }
  if (request.due.when() <= now()) {
    return to_caf(errc::timeout, what + ": the deadline passed before the call was made");
  }
  const auto& bounds = env->bounds;
  if (request.arguments.size() > bounds.tool_payload) {
    return to_caf(errc::too_large,
                  fmt::format("{}: the arguments have {} bytes; the limit is {}", what,
                              request.arguments.size(), bounds.tool_payload));
  }
  // Runs have one line, in the order of their calls; tenants have one each.
  auto line =
      serves_several ? caf::actor_cast<caf::actor_addr>(self->current_sender()) : caf::actor_addr{};
  if (auto before = calls.waiting(line); before >= bounds.calls_waiting) {
    return to_caf(errc::overloaded, fmt::format("{}: {} calls wait for the server already; make "
                                                "fewer at once, or try again later",
                                                what, before));
  }
  upstream_call waiting{request.id,
                        std::move(request.tool),
                        std::move(request.arguments),
                        request.due.when(),
                        {},
                        {},
                        std::nullopt,
                        std::move(request.room),
                        std::move(request.caller)};
  if (!env->budget->take_for_call(waiting.arguments.size() + call_overhead, waiting.memory)) {
    return to_caf(errc::overloaded, what + ": no memory for the arguments now; try again later");
  }
  waiting.trace = std::move(request.trace);
  waiting.line = std::move(line);
  auto promise = self->make_response_promise<std::string>();
  waiting.promise = promise;
  auto id = ++last_request;
  if (!calls.add(id, std::move(waiting))) {
    promise.deliver(to_caf(errc::internal, what + ": the call's id is in use"));
    return promise;
  }
  current == phase::ready ? send_waiting() : ensure_started();
  arm();
  return promise;
}

/// Sends calls as far as the server may have them at once.
void mcp_client_state::send_waiting() {
  while (current == phase::ready && calls.sent() < entry.most_calls) {
    auto id = calls.first_waiting();
    if (!id) {
      return;
    }
    send_call(*id);
  }
}

upstream::call_details mcp_client_state::details_of(const upstream_call& call) const {
  upstream::call_details result;
  if (call.caller) {
    result.abilities = abilities();
    result.progress = true;
  }
  result.abilities.roots = !entry.roots.empty();
  result.trace = call.trace;
  return result;
}

void mcp_client_state::send_call(std::uint64_t id) {
  auto& call = *calls.find(id);
  calls.mark_sent(id, call, now(), now() + entry.call_timeout);
  auto line = upstream::encode_call(id, generation, call.tool, call.arguments, details_of(call));
  if (generation == upstream::era::legacy) {
    // A modern server may require the call to be made again.
    std::string{}.swap(call.arguments);
    call.memory.release();
  }
  if (!write(std::move(line))) {
    fail_call(id, errc::overloaded, "no memory for the arguments now; try again later");
  }
}

void mcp_client_state::finish_call(std::uint64_t id, const rpc_message& answer) {
  auto* waiting = calls.find(id);
  if (waiting == nullptr || !waiting->sent || waiting->round) {
    // Timed out or cancelled meanwhile, or answered before.
    return;
  }
  const auto& bounds = env->bounds;
  if (!answer.error.empty()) {
    auto call = calls.take(id);
    call->promise.deliver(to_caf(call_failure(*call, upstream::read_failure(answer.error))));
    return;
  }
  if (answer.result.size() > bounds.tool_payload) {
    fail_call(id, errc::too_large,
              fmt::format("the result has {} bytes; the limit is {}", answer.result.size(),
                          bounds.tool_payload));
    return;
  }
  auto needed =
      upstream::read_call_result(generation == upstream::era::modern, answer.result, bounds);
  if (!needed) {
    fail_call(id, needed.error().code, needed.error().message);
    return;
  }
  if (*needed) {
    require_input(id, **needed);
    return;
  }
  auto call = calls.take(id);
  auto what = about(call->tool, entry.name);
  if (!call->room.take(answer.result.size())) {
    call->promise.deliver(
        to_caf(errc::overloaded,
               fmt::format("{}: no memory for its result of {} bytes while so many others wait to "
                           "be read; make fewer calls at once",
                           what, answer.result.size())));
  } else {
    call->promise.deliver(std::string{answer.result});
  }
}

error mcp_client_state::call_failure(const upstream_call& call,
                                     const upstream::failure& reason) const {
  if (!reason.needs.empty()) {
    return {errc::unavailable, fmt::format("{}: it needs {}: {}", about(call.tool, entry.name),
                                           reason.needs, secrets.hide(reason.message))};
  }
  bool listed = documents && !documents_changed;
  bool unknown = upstream::tells_unknown_tool(reason, call.tool) ||
                 (listed && find_tool(documents->tools, call.tool) == nullptr);
  if (!unknown) {
    return {errc::server_failed,
            fmt::format("tool \"{}\" of MCP server \"{}\" failed: {} {}", call.tool, entry.name,
                        reason.code, secrets.hide(reason.message))};
  }
  auto text = fmt::format("MCP server \"{}\" has no tool \"{}\"", entry.name, call.tool);
  if (listed) {
    auto similar = similar_tools(call.tool, documents->tools);
    text += similar.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(similar, ", "));
  }
  return {errc::not_found, std::move(text)};
}

void mcp_client_state::fail_call(std::uint64_t id, errc code, std::string_view why) {
  if (auto call = calls.take(id)) {
    call->promise.deliver(to_caf(code, fmt::format("{}: {}", about(call->tool, entry.name), why)));
  }
}

void mcp_client_state::cancel(std::uint64_t caller_id) {
  auto id = calls.of_caller(caller_id);
  if (!id) {
    cancelled_early.push_back(caller_id);
    if (cancelled_early.size() > early_cancels) {
      cancelled_early.pop_front();
    }
    return;
  }
  abandon_call(*id, "the caller gave up");
  fail_call(*id, errc::cancelled, "cancelled by the caller");
  send_waiting();
  arm();
}

/// Tells the server that a call is of no use any more.
void mcp_client_state::abandon_call(std::uint64_t id, std::string_view why) {
  const auto& call = *calls.find(id);
  if (call.sent && !call.round && current == phase::ready) {
    write(upstream::encode_cancelled(id, why));
    if (generation == upstream::era::legacy) {
      // Modern servers ask in their answers, which tell whose they are.
      calls.note_abandoned(call, now(), now() + entry.call_timeout);
    }
  }
}

void mcp_client_state::expire_calls() {
  for (auto first = calls.first_due(); first && first->first <= now(); first = calls.first_due()) {
    auto id = first->second;
    auto sent = calls.find(id)->sent;
    if (!sent && current == phase::ready) {
      fail_call(id, errc::timeout,
                fmt::format("it waited in vain for one of {} other calls to end, as many as the "
                            "server may have at once (\"maxConcurrentCalls\" in {})",
                            entry.most_calls, entry.source));
      continue;
    }
    if (!sent) {
      auto reason = still_starting();
      fail_call(id, reason.code, reason.message);
      continue;
    }
    abandon_call(id, "the deadline passed");
    auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now() - *sent);
    fail_call(id, errc::timeout,
              fmt::format("no answer within {:.1f} s, which the run or the server's callTimeout "
                          "allows",
                          static_cast<double>(waited.count()) / 1000));
  }
}

/// Why a request that waits for the start ends without an answer. The start goes on, but for
/// `bulkhead run`, which ends with its run.
error mcp_client_state::still_starting() const {
  constexpr auto remedy =
      "retry in a moment, or give the run more time (\"timeout\" of run_python, "
      "--timeout of bulkhead run)";
  if (starting()) {
    auto since = std::chrono::duration_cast<std::chrono::seconds>(self->clock().now() - started_at);
    return {errc::timeout,
            fmt::format("{} is still starting ({} so far); {}", subject(), since, remedy)};
  }
  return {errc::timeout, fmt::format("{} is waiting to be restarted; {}; its last failure: {}",
                                     subject(), remedy, last_error)};
}

/// Answers every call and every wait for documents.
void mcp_client_state::fail_waiting(const error& reason) {
  for (auto id : calls.ids()) {
    fail_call(id, reason.code, reason.message);
  }
  for (auto& waiter : std::exchange(waiters, {})) {
    waiter.promise.deliver(to_caf(reason));
  }
}

client_status mcp_client_state::status() {
  client_status result;
  result.server = entry.name;
  result.version = server.version;
  result.tools = documents ? static_cast<std::uint32_t>(documents->tools.size()) : 0;
  result.last_error = last_error;
  if (starting()) {
    result.state = "starting";
  } else if (current == phase::ready) {
    result.state = "ready";
  } else if (current == phase::stopping) {
    result.state = "stopping";
  } else if (restarts.used_up(now())) {
    result.state = "failed";
  } else {
    result.state = now() < restarts.next_start() ? "backing off" : "idle";
  }
  return result;
}

} // namespace bulkhead
