// What a run's code asks the host for. Every path to a tool goes through `route_to` and the checks
// of `run_rights`; nothing here trusts a name, an id or a size that the guest sent.

#include "actors/invocation.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/errors.hpp"
#include "actors/log_scope.hpp"
#include "actors/tool_shelf.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Thousands of tools take a second to index, and other servers may be before them.
constexpr auto library_patience = 30s;

/// Names told of what a run has.
constexpr std::size_t most_names = 20;

} // namespace

std::chrono::nanoseconds invocation_state::time_left() const {
  auto time = questions_open > 0 ? paused_since : self->clock().now();
  return std::max<std::chrono::nanoseconds>(due - time, 1ms);
}

/// `room` holds the payload's memory until the sandbox has it, which charges what it queues itself.
void invocation_state::respond(std::uint64_t call, std::string payload, const answer_room& room) {
  open_calls.erase(call);
  given_up.erase(call);
  note_result(call, payload);
  if (now == phase::over) {
    return;
  }
  if (!room.charged()) {
    self->send(sandbox, respond_atom::value, call, std::move(payload));
    return;
  }
  self->request(sandbox, time_left() + 1s, respond_atom::value, call, std::move(payload))
      .then([room] {}, [room](const caf::error&) {});
}

void invocation_state::refuse(std::uint64_t call, error reason) {
  open_calls.erase(call);
  given_up.erase(call);
  note_end(call, to_string(reason.code));
  if (now != phase::over) {
    self->send(sandbox, refuse_atom::value, call, std::move(reason));
  }
}

void invocation_state::take_call(guest_call& call) {
  if (now != phase::running && now != phase::interrupting) {
    return;
  }
  if (open_calls.contains(call.id)) {
    // Answering would answer the first call too, and noting it would take the first one's place.
    if (++calls_repeated <= most_lines) {
      log_scope about{ids()};
      context.env->log->warn("run {}: two calls with the id {}", request.id, call.id);
    }
    return;
  }
  if (now == phase::interrupting) {
    note_call(call);
    note_end(call.id, to_string(errc::closed));
    self->send(sandbox, refuse_atom::value, call.id, error{errc::closed, "the run is stopped"});
    return;
  }
  auto most = context.env->bounds.calls_in_flight;
  memory_budget::share share;
  error reason{errc::none, {}};
  if (open_calls.size() >= most) {
    reason = {errc::limit, fmt::format("more than {} calls at once", most)};
  } else if (!budget->take_for_call(call.arguments.size(), share)) {
    reason = {errc::overloaded, "the memory budget has no room for the arguments; try again later"};
  }
  note_call(call);
  if (reason.code != errc::none) {
    note_end(call.id, to_string(reason.code));
    self->send(sandbox, refuse_atom::value, call.id, std::move(reason));
    return;
  }
  open_calls.emplace(call.id, std::move(share));
  route(call);
}

void invocation_state::route(guest_call& call) {
  switch (call.kind) {
  case guest_call_kind::list_servers: {
    std::vector<server_brief> briefs;
    for (const auto& [name, to] : links) {
      if (to.named) {
        briefs.push_back(to.brief);
      }
    }
    respond(call.id, encode_servers(briefs));
    return;
  }
  case guest_call_kind::search_tool_docs:
    search(call);
    return;
  default:
    break;
  }
  if (auto* to = find_link(call.server)) {
    if (auto why = withdrawn(to->brief.name, call.tool); !why.empty()) {
      note_tool(call.id, to->brief.name, call.tool, why);
      refuse(call.id, {errc::denied, std::move(why)});
      return;
    }
    route_to(*to, call);
  } else if (call.kind == guest_call_kind::query_tool_docs && may_know(call.server)) {
    ask_library(std::move(call), {});
  } else {
    refuse_unknown_server(call);
  }
}

invocation_state::link* invocation_state::find_link(std::string_view server) {
  for (auto& [name, to] : links) {
    if (to.is_called(server)) {
      return &to;
    }
  }
  return nullptr;
}

/// Why a server that this run could call, or a tool of it, may no longer be used: the configuration
/// has changed since the run began. Empty if it may. What is allowed only now stays out of reach.
std::string invocation_state::withdrawn(std::string_view server, std::string_view tool) const {
  auto now_configured = context.configured ? context.configured->get() : nullptr;
  if (!now_configured) {
    return {};
  }
  if (now_configured->rules == catalogue->rules) {
    return now_configured->find(server) != nullptr
               ? std::string{}
               : fmt::format("server \"{}\" isn't configured any more", server);
  }
  if (auto verdict = allows_server(now_configured->rules, server); !verdict.allowed) {
    return fmt::format("server \"{}\" is denied by policy now: {}", server, verdict.rule);
  }
  if (now_configured->find(server) == nullptr) {
    return fmt::format("server \"{}\" isn't configured any more", server);
  }
  auto known = links.find(std::string{server});
  const auto* document = known != links.end() && known->second.tools
                             ? find_tool(known->second.tools->all->tools, tool)
                             : nullptr;
  auto verdict = document != nullptr ? allows_tool(now_configured->rules, server, *document)
                                     : allows_tool_name(now_configured->rules, server, tool);
  return verdict.allowed || tool.empty()
             ? std::string{}
             : fmt::format("tool \"{}\" of \"{}\" is denied by policy now: {}", tool, server,
                           verdict.rule);
}

/// What policy says of a call, and what it says now if it has changed since the run began, which
/// can only take rights away.
policy_verdict invocation_state::may_call(std::string_view server,
                                          const tool_document& tool) const {
  auto verdict = rights.tool(server, tool);
  auto now_configured = context.configured ? context.configured->get() : nullptr;
  if (!verdict.allowed || !now_configured || now_configured->rules == catalogue->rules) {
    return verdict;
  }
  auto today = allows_tool(now_configured->rules, server, tool);
  if (!today.allowed || (today.confirm && !verdict.confirm)) {
    today.rule += ", as policy is now";
    return today;
  }
  return verdict;
}

void invocation_state::refuse_unknown_server(const guest_call& call) {
  const auto* entry = catalogue->find(call.server);
  if (entry != nullptr && allows_server(catalogue->rules, entry->name).allowed) {
    refuse(call.id,
           {errc::denied, fmt::format("server \"{0}\" is not among this run's servers; pass "
                                      "servers=[\"{0}\"] to run_python",
                                      entry->name)});
    return;
  }
  std::vector<std::string_view> names;
  for (const auto& [name, to] : links) {
    names.push_back(name);
    if (names.size() > most_names) {
      names.back() = "…";
      break;
    }
  }
  refuse(call.id,
         {errc::not_found,
          fmt::format("no server \"{}\" in this run; it has: {}", call.server,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))});
}

void invocation_state::route_to(link& to, guest_call& call) {
  if (to.now == link::state::ready && to.tools->documents->outdated.is_set()) {
    to.now = link::state::unknown;
  }
  if (to.now == link::state::unknown || to.now == link::state::connecting) {
    connect(to);
    wait_for(to, call);
    return;
  }
  serve(to, call);
}

void invocation_state::wait_for(link& to, guest_call& call) {
  to.waiting.push_back(std::move(call));
  if (request.patient && !std::exchange(to.pauses, true)) {
    pause();
  }
}

/// How long to wait for a server that may have to start.
std::chrono::nanoseconds invocation_state::start_patience(const link& to) const {
  const auto* entry = catalogue->find(to.brief.name);
  if (request.patient && entry != nullptr) {
    return entry->start_timeout + entry->call_timeout;
  }
  // Before the code runs its deadline isn't known; a server may take that long to start.
  return now == phase::running ? time_left() : std::chrono::nanoseconds{request.timeout};
}

/// Once it is known what the server has, or that it can't be known.
void invocation_state::serve(link& to, guest_call& call) {
  if (to.now == link::state::failed) {
    refuse(call.id, to.failure);
    // The next call tries again: the client decides whether that is worth it.
    to.now = link::state::unknown;
    return;
  }
  if (call.kind == guest_call_kind::call_tool) {
    call_tool(to, call);
  } else {
    ask_library(std::move(call), {to.tools});
  }
}

void invocation_state::connect(link& to) {
  if (to.now != link::state::unknown) {
    return;
  }
  to.now = link::state::connecting;
  if (!std::exchange(to.named, true)) {
    answer.servers.push_back(to.brief.name);
  }
  self->request(context.registry, 10s, client_atom::value, to.brief.name)
      .then(
          [this, &to](const mcp_client_actor& client) {
            to.client = client;
            fetch_documents(to);
          },
          [this, &to](const caf::error& reason) {
            to.failure = from_caf(reason, "find server " + to.brief.name);
            to.now = link::state::failed;
            settle(to);
          });
}

void invocation_state::fetch_documents(link& to) {
  auto patience = start_patience(to);
  auto until =
      deadline::at(self->clock().now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience));
  self->request(to.client, patience + 1s, documents_atom::value, until)
      .then([this, &to](const documents_ptr& documents) { shelve(to, documents); },
            [this, &to](const caf::error& reason) {
              to.failure = from_caf(reason, "start server " + to.brief.name);
              to.now = link::state::failed;
              settle(to);
            });
}

void invocation_state::shelve(link& to, const documents_ptr& documents) {
  self->request(context.library, library_patience, documents_atom::value, catalogue, documents)
      .then(
          [this, &to](const tool_shelf_ptr& tools) {
            to.tools = tools;
            to.now = link::state::ready;
            settle(to);
          },
          [this, &to](const caf::error& reason) {
            to.failure = from_caf(reason, "read the tools of server " + to.brief.name);
            to.now = link::state::failed;
            settle(to);
          });
}

void invocation_state::settle(link& to) {
  auto failed = to.now == link::state::failed;
  if (std::exchange(to.pauses, false)) {
    go_on();
  }
  for (auto& call : std::exchange(to.waiting, {})) {
    if (failed) {
      refuse(call.id, to.failure);
    } else {
      serve(to, call);
    }
  }
  if (failed && now == phase::running) {
    to.now = link::state::unknown;
  }
  finish_searches();
}

void invocation_state::call_tool(link& to, guest_call& call, bool checked) {
  if (given_up.contains(call.id)) {
    refuse(call.id, {errc::cancelled, "the code gave up on the call"});
    return;
  }
  // Among all tools of the server, also those that policy hides: a denied one says so.
  const auto& server = to.brief.name;
  const auto* tool = find_tool(to.tools->all->tools, call.tool);
  auto verdict = tool != nullptr ? may_call(server, *tool) : rights.tool_name(server, call.tool);
  note_tool(call.id, server, tool != nullptr ? tool->name : call.tool, verdict.rule);
  if (!verdict.allowed) {
    refuse(call.id, {errc::denied, fmt::format("tool \"{}\" of \"{}\" is denied by policy: {}",
                                               call.tool, to.brief.name, verdict.rule)});
    return;
  }
  if (tool == nullptr) {
    // What was meant instead takes looking for.
    ask_library(std::move(call), {to.tools});
    return;
  }
  if (!checked && !arguments_fit(to, *tool, call)) {
    return;
  }
  if (auto over = counted.take(rights.rules(), *context.rates, request.owner, server, tool->name,
                               self->clock().now())) {
    note_tool(call.id, server, tool->name, *over);
    refuse(call.id,
           {errc::limit, fmt::format("call tool \"{}\" of \"{}\": {}", tool->name, server, *over)});
    return;
  }
  if (verdict.confirm) {
    need_approval(to, *tool, call, std::move(verdict.rule));
    return;
  }
  send_call(to, tool->name, call);
}

/// Everything that has to be asked for has been.
void invocation_state::send_call(link& to, const std::string& tool, guest_call& call) {
  note_sent(call);
  auto serial = context.env->next_serial();
  calls.emplace(call.id, outgoing{&to, tool, to.client, serial, self->clock().now()});
  request.watch->called_tool();
  // While the server asks the client, the call's clock stands still, too.
  auto left = time_left() + context.env->bounds.question_time;
  answer_room room{budget};
  tool_call what{serial,
                 tool,
                 std::move(call.arguments),
                 deadline::at(self->clock().now() + time_left()),
                 room,
                 tool_caller_actor{self},
                 request.trace};
  self->request(to.client, left + 1s, call_atom::value, std::move(what))
      .then(
          [this, id = call.id, room](std::string& result) { respond(id, std::move(result), room); },
          [this, id = call.id, what = call.tool](const caf::error& reason) {
            refuse(id, from_caf(reason, "call tool " + what));
          });
}

/// A few questions at once; the library is there for all runs.
void invocation_state::ask_library(guest_call call, std::vector<tool_shelf_ptr> among) {
  tool_question question{std::move(call), std::move(among), answer_room{budget}};
  about_servers(question);
  questions.push_back(std::move(question));
  next_question();
}

void invocation_state::next_question() {
  while (!questions.empty() && questions_asked < context.env->bounds.questions_in_flight) {
    auto question = std::move(questions.front());
    questions.pop_front();
    ++questions_asked;
    self->request(context.library, time_left() + 1s, question)
        .then(
            [this, id = question.call.id, room = question.room](std::string& text) {
              --questions_asked;
              respond(id, std::move(text), room);
              next_question();
            },
            [this, id = question.call.id](const caf::error& reason) {
              --questions_asked;
              refuse(id, from_caf(reason, "look up tools"));
              next_question();
            });
  }
}

/// What the code had asked for and not got, for people; empty if nothing.
std::string invocation_state::waited_for() const {
  constexpr std::size_t most_told = 3;
  std::vector<std::string> what;
  for (const auto& [name, to] : links) {
    if (!to.waiting.empty() || (to.now == link::state::connecting && !searches.empty())) {
      what.push_back(
          fmt::format("server \"{}\", which was still starting{}{}", name,
                      to.failure.message.empty() ? "" : "; before that: ", to.failure.message));
    }
  }
  for (const auto& [id, call] : calls) {
    what.push_back(fmt::format("tool \"{}\" of \"{}\"", call.tool, call.to->brief.name));
  }
  if (what.size() > most_told) {
    what.resize(most_told);
    what.back() = "others";
  }
  return fmt::format("{}", fmt::join(what, " and "));
}

} // namespace bulkhead
