#include "actors/shared_client.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// A registry answers from memory; more than this means that it is stuck.
constexpr auto registry_time = 10s;

/// Less than our own registry waits for us.
constexpr auto status_time = 800ms;

/// A client answers at the deadline at the latest, when it isn't busy.
constexpr auto late_answer = 2s;

/// Arguments of one tenant's open calls, in times the largest ones: others' need room, too.
constexpr std::size_t most_arguments = 2;

/// What an open call costs besides its arguments.
constexpr std::size_t call_overhead = 512;

} // namespace

shared_client_state::shared_client_state(shared_client_impl_actor::pointer self) : self{self} {}

std::chrono::nanoseconds shared_client_state::patience_until(deadline due) {
  return std::max<std::chrono::nanoseconds>(due.when() - self->clock().now(), 0ns) + late_answer;
}

/// Asks for the client as it is now: it may be another since the server was configured differently.
void shared_client_state::find(use_client use, take_failure refuse) {
  auto registry = services.registry();
  if (!registry) {
    refuse({errc::unavailable,
            fmt::format("MCP server \"{}\" is shared, and the shared servers aren't running now; "
                        "try again, or have the server's log looked at",
                        entry.name)});
    return;
  }
  self->request(registry, registry_time, client_atom::value, entry.name)
      .then(
          [this, use = std::move(use)](const mcp_client_actor& found) {
            take_client(found);
            use(found);
          },
          [this, refuse](const caf::error& reason) {
            auto why = from_caf(reason, fmt::format("find the MCP server \"{}\"", entry.name));
            if (why.code == errc::not_found) {
              // The registry would tell what else there is, of which others alone may know.
              why.message = fmt::format("MCP server \"{}\" is shared, and isn't there now: its "
                                        "configuration is changing, or has an error, which the "
                                        "server's log tells; try again in a moment",
                                        entry.name);
            }
            refuse(why);
          });
}

void shared_client_state::take_client(const mcp_client_actor& found) {
  if (client == found) {
    return;
  }
  if (client) {
    self->demonitor(client.address());
  }
  client = found;
  self->monitor(client);
}

void shared_client_state::with_client(use_client use, take_failure refuse) {
  if (client) {
    use(client);
  } else {
    find(std::move(use), std::move(refuse));
  }
}

caf::result<documents_ptr> shared_client_state::documents_for(deadline due) {
  auto promise = self->make_response_promise<documents_ptr>();
  auto refuse = [promise](const error& reason) mutable { promise.deliver(to_caf(reason)); };
  find(
      [=, this](const mcp_client_actor& found) {
        self->request(found, patience_until(due), documents_atom::value, due)
            .then([this, promise](
                      const documents_ptr& shared) mutable { promise.deliver(as_ours(shared)); },
                  [this, refuse](const caf::error& reason) mutable {
                    refuse(from_caf(reason,
                                    fmt::format("list tools of MCP server \"{}\"", entry.name)));
                  });
      },
      refuse);
  return promise;
}

/// The name by which code sees a server depends on what other servers its tenant has.
documents_ptr shared_client_state::as_ours(const documents_ptr& shared) {
  if (shared->alias == entry.alias) {
    return shared;
  }
  if (theirs != shared) {
    auto copy = std::make_shared<server_documents>(*shared);
    copy->alias = entry.alias;
    theirs = shared;
    ours = std::move(copy);
  }
  return ours;
}

caf::result<std::string> shared_client_state::call(tool_call& request) {
  open_call made;
  made.caller_id = request.id;
  made.what = fmt::format("call tool \"{}\" of MCP server \"{}\"", request.tool, entry.name);
  if (stopping) {
    return to_caf(errc::closed, made.what + ": the server is being stopped");
  }
  if (!arguments->take(request.arguments.size() + call_overhead, made.held)) {
    return to_caf(errc::overloaded,
                  made.what + ": the arguments of calls that wait for it are too large together; "
                              "make fewer at once");
  }
  auto id = services.new_call();
  if (!by_caller.emplace(made.caller_id, id).second) {
    return to_caf(errc::internal, made.what + ": the call's id is in use");
  }
  auto promise = self->make_response_promise<std::string>();
  made.promise = promise;
  made.caller = std::exchange(request.caller, tool_caller_actor{});
  request.id = id;
  if (made.caller) {
    request.caller = tool_caller_actor{self};
  }
  calls.emplace(id, std::move(made));
  auto held = std::make_shared<tool_call>(std::move(request));
  with_client([=, this](const mcp_client_actor& found) { send(id, found, std::move(*held)); },
              [=, this](const error& reason) { fail(id, reason); });
  return promise;
}

void shared_client_state::send(std::uint64_t id, const mcp_client_actor& to, tool_call request) {
  auto found = calls.find(id);
  if (found == calls.end()) {
    return; // cancelled meanwhile
  }
  found->second.sent_to = to;
  self->request(to, patience_until(request.due), call_atom::value, std::move(request))
      .then(
          [this, id](std::string& result) {
            if (auto call = calls.extract(id)) {
              by_caller.erase(call.mapped().caller_id);
              call.mapped().promise.deliver(std::move(result));
            }
          },
          [this, id, what = found->second.what](const caf::error& reason) {
            fail(id, from_caf(reason, what));
          });
}

void shared_client_state::fail(std::uint64_t id, const error& reason) {
  if (auto call = calls.extract(id)) {
    by_caller.erase(call.mapped().caller_id);
    call.mapped().promise.deliver(to_caf(reason));
  }
}

void shared_client_state::cancel(std::uint64_t caller_id) {
  auto id = by_caller.find(caller_id);
  if (id == by_caller.end()) {
    return; // answered: from one sender a cancel doesn't overtake its call
  }
  const auto& call = calls.at(id->second);
  if (call.sent_to) {
    self->send(call.sent_to, cancel_atom::value, id->second);
  } else {
    fail(id->second, {errc::cancelled, call.what + ": cancelled by the caller"});
  }
}

void shared_client_state::take_progress(tool_progress& progress) {
  auto found = calls.find(progress.call);
  if (found != calls.end() && found->second.caller) {
    progress.call = found->second.caller_id;
    self->send(found->second.caller, std::move(progress));
  }
}

caf::result<client_status> shared_client_state::status() {
  if (!client) {
    client_status idle;
    idle.server = entry.name;
    idle.state = "idle";
    return idle;
  }
  auto promise = self->make_response_promise<client_status>();
  self->request(client, status_time, status_atom::value)
      .then([promise](client_status& answer) mutable { promise.deliver(std::move(answer)); },
            [promise](const caf::error& reason) mutable { promise.deliver(reason); });
  return promise;
}

/// The server goes on for the others.
void shared_client_state::stop() {
  stopping = true;
  while (!calls.empty()) {
    const auto& [id, call] = *calls.begin();
    if (call.sent_to) {
      self->send(call.sent_to, cancel_atom::value, id);
    }
    fail(id, {errc::closed, call.what + ": the server is being stopped"});
  }
}

shared_client_impl_actor::behavior_type shared_client_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) {
    if (client && down.source == client.address()) {
      client = nullptr;
    }
  });
  self->set_exit_handler([this](const caf::exit_msg& message) {
    stop();
    self->quit(message.reason);
  });
  return {
      [this](documents_atom, deadline due) { return documents_for(due); },
      [this](call_atom, tool_call& request) { return call(request); },
      [this](cancel_atom, std::uint64_t id) { cancel(id); },
      [this](status_atom) { return status(); },
      [this](stop_atom) {
        stop();
        self->quit();
        return caf::ok_atom::value;
      },
      [this](tool_progress& progress) { take_progress(progress); },
      [](const server_question& question) -> caf::result<std::string> {
        return to_caf(errc::unavailable,
                      fmt::format("{}: the server is shared by several tenants, so that nobody can "
                                  "be asked",
                                  question.method));
      },
  };
}

shared_client_impl_actor::behavior_type
shared_client(shared_client_impl_actor::stateful_pointer<shared_client_state> self,
              environment_ptr env, shared_services services, server_entry entry) {
  auto& state = self->state;
  state.arguments = std::make_shared<memory_budget>(most_arguments * env->bounds.tool_payload);
  state.env = std::move(env);
  state.services = std::move(services);
  state.entry = std::move(entry);
  return state.make_behavior();
}

} // namespace bulkhead
