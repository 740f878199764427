// What a run's code asks the host for. Every path to a tool goes through `route_to` and the checks
// of `run_rights`; nothing here trusts a name, an id or a size that the guest sent.

#include "actors/invocation.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/errors.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

std::chrono::nanoseconds invocation_state::time_left() const {
  return std::max<std::chrono::nanoseconds>(due - self->clock().now(), 1ms);
}

void invocation_state::respond(std::uint64_t call, std::string payload) {
  open_calls.erase(call);
  if (now != phase::over) {
    self->send(sandbox, respond_atom::value, call, std::move(payload));
  }
}

void invocation_state::refuse(std::uint64_t call, error reason) {
  open_calls.erase(call);
  if (now != phase::over) {
    self->send(sandbox, refuse_atom::value, call, std::move(reason));
  }
}

void invocation_state::take_call(guest_call& call) {
  if (now != phase::running) {
    return;
  }
  auto most = context.env->bounds.calls_in_flight;
  memory_budget::share share;
  error reason{errc::none, {}};
  if (open_calls.contains(call.id)) {
    // Answering would answer the first call too.
    context.env->log->warn("run {}: two calls with the id {}", request.id, call.id);
    return;
  }
  if (open_calls.size() >= most) {
    reason = {errc::limit, fmt::format("more than {} calls at once", most)};
  } else if (!context.env->budget->take(call.arguments.size(), share)) {
    reason = {errc::overloaded, "the memory budget has no room for the arguments; try again later"};
  }
  if (reason.code != errc::none) {
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
      briefs.push_back(to.brief);
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
    route_to(*to, call);
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

void invocation_state::refuse_unknown_server(const guest_call& call) {
  const auto* entry = catalogue->find(call.server);
  if (entry != nullptr && allows_server(catalogue->rules, entry->name).allowed) {
    refuse(call.id,
           {errc::denied, fmt::format("server \"{0}\" is not among this run's servers; pass "
                                      "servers=[\"{0}\"] to run_python",
                                      entry->name)});
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, to] : links) {
    names.push_back(name);
  }
  refuse(call.id,
         {errc::not_found,
          fmt::format("no server \"{}\" in this run; it has: {}", call.server,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))});
}

void invocation_state::route_to(link& to, guest_call& call) {
  if (to.now == link::state::unknown || to.now == link::state::connecting) {
    connect(to);
    to.waiting.push_back(std::move(call));
    return;
  }
  if (to.now == link::state::failed) {
    refuse(call.id, to.failure);
    // The next call tries again: the client decides whether that is worth it.
    to.now = link::state::unknown;
    return;
  }
  if (call.kind == guest_call_kind::call_tool) {
    call_tool(to, call);
  } else {
    query_documents(to, call);
  }
}

void invocation_state::connect(link& to) {
  if (to.now != link::state::unknown) {
    return;
  }
  to.now = link::state::connecting;
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

documents_ptr invocation_state::allowed_part(const link& of, const documents_ptr& all) const {
  auto denied = [&](const tool_document& tool) {
    return !rights.tool(of.brief.name, tool.name).allowed;
  };
  if (std::none_of(all->tools.begin(), all->tools.end(), denied)) {
    return all;
  }
  auto allowed = std::make_shared<server_documents>(*all);
  std::erase_if(allowed->tools, denied);
  return allowed;
}

void invocation_state::fetch_documents(link& to) {
  // Before the code runs its deadline isn't known; a server may take that long to start.
  auto patience = now == phase::running ? time_left() : std::chrono::nanoseconds{request.timeout};
  auto until =
      deadline::at(self->clock().now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience));
  self->request(to.client, patience + 1s, documents_atom::value, until)
      .then(
          [this, &to](const documents_ptr& documents) {
            to.documents = allowed_part(to, documents);
            to.now = link::state::ready;
            settle(to);
          },
          [this, &to](const caf::error& reason) {
            to.failure = from_caf(reason, "start server " + to.brief.name);
            to.now = link::state::failed;
            settle(to);
          });
}

void invocation_state::settle(link& to) {
  auto failed = to.now == link::state::failed;
  for (auto& call : std::exchange(to.waiting, {})) {
    if (failed) {
      refuse(call.id, to.failure);
    } else {
      route_to(to, call);
    }
  }
  if (failed && now == phase::running) {
    to.now = link::state::unknown;
  }
  finish_searches();
}

void invocation_state::call_tool(link& to, guest_call& call) {
  const auto* tool = find_tool(to.documents->tools, call.tool);
  // The raw name goes through policy also when no document has it: a denied tool says so.
  auto verdict = rights.tool(to.brief.name, tool != nullptr ? tool->name : call.tool);
  if (!verdict.allowed) {
    refuse(call.id, {errc::denied, fmt::format("tool \"{}\" of \"{}\" is denied by policy: {}",
                                               call.tool, to.brief.name, verdict.rule)});
    return;
  }
  if (tool == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : to.documents->tools) {
      names.push_back(known.name);
    }
    auto close = similar_names(call.tool, names);
    refuse(call.id, {errc::not_found,
                     fmt::format("server \"{}\" has no tool \"{}\"{}", to.brief.name, call.tool,
                                 close.empty() ? "; list_tools shows what it has"
                                               : fmt::format("; did you mean {}?",
                                                             fmt::join(close, " or ")))});
    return;
  }
  auto serial = context.env->next_serial();
  calls.emplace(call.id, outgoing{to.client, serial});
  auto left = time_left();
  tool_call what{serial, tool->name, std::move(call.arguments), deadline::at(due)};
  self->request(to.client, left + 1s, call_atom::value, std::move(what))
      .then(
          [this, id = call.id](std::string& result) {
            calls.erase(id);
            respond(id, std::move(result));
          },
          [this, id = call.id, what = call.tool](const caf::error& reason) {
            calls.erase(id);
            refuse(id, from_caf(reason, "call tool " + what));
          });
}

void invocation_state::query_documents(link& to, const guest_call& call) {
  if (call.kind == guest_call_kind::list_tools) {
    respond(call.id, encode_tool_list(to.documents->tools));
    return;
  }
  auto text = encode_tool_docs(*to.documents, call.tool, call.full_detail);
  text ? respond(call.id, std::move(*text)) : refuse(call.id, text.error());
}

void invocation_state::search(const guest_call& call) {
  if (!call.server.empty() && find_link(call.server) == nullptr) {
    refuse_unknown_server(call);
    return;
  }
  searches.push_back(call);
  finish_searches();
}

void invocation_state::finish_searches() {
  auto connecting = [](const auto& entry) { return entry.second.now == link::state::connecting; };
  if (std::any_of(links.begin(), links.end(), connecting)) {
    return;
  }
  for (const auto& call : std::exchange(searches, {})) {
    std::vector<const server_documents*> known;
    const error* failure = nullptr;
    for (const auto& [name, to] : links) {
      if (!call.server.empty() && !to.is_called(call.server)) {
        continue;
      }
      if (to.documents) {
        known.push_back(to.documents.get());
      } else if (!to.failure.message.empty()) {
        failure = &to.failure;
      }
    }
    if (known.empty() && failure != nullptr) {
      // An empty list would say that there is no such tool.
      refuse(call.id, *failure);
      continue;
    }
    respond(call.id, search_tool_documents(known, call.query, call.limit, call.full_detail));
  }
}

} // namespace bulkhead
