#include "actors/client_registry.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "actors/mcp_client.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// A client answers from memory; more than this means that it is stuck.
constexpr auto status_time = 1s;

/// A client ends its server within four seconds.
constexpr auto stop_time = 5s;

/// How long a run may go on with a server as it was configured when the run began.
constexpr auto retirement = 10min;

/// Would a client of one do for the other? What is only shown doesn't matter.
bool same_server(server_entry one, const server_entry& other) {
  one.description = other.description;
  one.source = other.source;
  one.shown_args = other.shown_args;
  one.shown_url = other.shown_url;
  return one == other;
}

catalogue_ptr allowed_part(const server_catalogue& configured) {
  auto result = std::make_shared<server_catalogue>();
  result->rules = configured.rules;
  result->problems = configured.problems;
  for (const auto& entry : configured.servers) {
    if (allows_server(configured.rules, entry.name).allowed) {
      result->servers.push_back(entry);
    }
  }
  return result;
}

/// Collects the answers of several clients; the last one releases the promise.
struct status_collection {
  std::map<std::string, client_status> found;
  std::size_t missing = 0;
  caf::typed_response_promise<std::vector<client_status>> promise;

  void add(const std::string& name, client_status status) {
    found[name] = std::move(status);
    if (--missing > 0) {
      return;
    }
    std::vector<client_status> result;
    for (auto& [name, each] : found) {
      result.push_back(std::move(each));
    }
    promise.deliver(std::move(result));
  }
};

using client_pointer = mcp_client_impl_actor::stateful_pointer<mcp_client_state>;

mcp_client_impl_actor::behavior_type client_for_several(client_pointer self, environment_ptr env,
                                                        child_host_actor processes,
                                                        server_entry entry) {
  self->state.serves_several = true;
  return mcp_client(self, std::move(env), std::move(processes), std::move(entry));
}

mcp_client_impl_actor::behavior_type http_client_for_several(client_pointer self,
                                                             environment_ptr env,
                                                             mcp_http_services web,
                                                             server_entry entry) {
  self->state.serves_several = true;
  return mcp_http_client(self, std::move(env), std::move(web), std::move(entry));
}

} // namespace

client_registry_state::client_registry_state(client_registry_impl_actor::pointer self)
    : self{self} {}

void client_registry_state::configure(catalogue_ptr configured) {
  catalogue = allowed_part(*configured);
  all = std::move(configured);
  if (stopping) {
    return;
  }
  for (auto at = clients.begin(); at != clients.end();) {
    const auto* entry = catalogue->find(at->first);
    if (entry != nullptr && entry->name == at->first && same_server(at->second.entry, *entry) &&
        is_shared(at->second.entry) == is_shared(*entry)) {
      ++at;
      continue;
    }
    env->log->info("MCP server \"{}\" {}", at->first,
                   entry != nullptr ? "is configured differently now" : "is no longer to be used");
    retire(std::move(at->second));
    at = clients.erase(at);
  }
}

void client_registry_state::retire(known_client client) {
  auto number = ++last_retired;
  bool unused = client.users.empty();
  retired.emplace(number, std::move(client));
  if (unused) {
    stop_retired(number);
  } else {
    self->delayed_send(self, retirement, tick_atom::value, number);
  }
}

void client_registry_state::stop_retired(std::uint64_t number) {
  auto found = retired.find(number);
  if (found == retired.end() || stopping) {
    return;
  }
  auto client = std::move(found->second);
  retired.erase(found);
  self->request(client.handle, stop_time, stop_atom::value)
      .then([](caf::ok_atom) {},
            [this, client](const caf::error& reason) {
              env->log->error("stop MCP server \"{}\": {}", client.entry.name,
                              from_caf(reason, "no answer").message);
              caf::anon_send_exit(client.handle, caf::exit_reason::kill);
            });
}

/// Whoever asked for a client may call it until it is gone itself.
void client_registry_state::note_user(known_client& client) {
  auto user = caf::actor_cast<caf::actor_addr>(self->current_sender());
  if (user && client.users.insert(user).second) {
    self->monitor(user);
  }
}

void client_registry_state::user_gone(const caf::actor_addr& user) {
  for (auto& [name, client] : clients) {
    client.users.erase(user);
  }
  std::vector<std::uint64_t> unused;
  for (auto& [number, client] : retired) {
    if (client.users.erase(user) > 0 && client.users.empty()) {
      unused.push_back(number);
    }
  }
  for (auto number : unused) {
    stop_retired(number);
  }
}

error client_registry_state::unknown_server(const std::string& server) const {
  if (const auto* entry = all->find(server)) {
    auto verdict = allows_server(all->rules, entry->name);
    return {errc::denied,
            fmt::format("MCP server \"{}\" is denied by policy{}", entry->name,
                        verdict.rule.empty() ? std::string{} : fmt::format(" ({})", verdict.rule))};
  }
  std::vector<std::string> names;
  for (const auto& entry : catalogue->servers) {
    names.push_back(entry.name);
  }
  auto similar = similar_names(server, names);
  auto hint = similar.empty()
                  ? fmt::format("configured are: {}",
                                names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))
                  : fmt::format("did you mean {}?", fmt::join(similar, ", "));
  return {errc::not_found, fmt::format("there is no MCP server \"{}\"; {}", server, hint)};
}

mcp_client_actor client_registry_state::spawn_client(const server_entry& entry) {
  if (is_shared(entry)) {
    return spawn_shared(entry);
  }
  if (entry.transport == server_transport::stdio) {
    return self->spawn(mcp_client, env, processes, entry);
  }
  return self->spawn(mcp_http_client, env, web, entry);
}

mcp_client_actor client_registry_state::spawn_shared(const server_entry& entry) {
  if (shared.registry) {
    return self->spawn(shared_client, env, shared, entry);
  }
  return entry.transport == server_transport::stdio
             ? self->spawn(client_for_several, env, processes, entry)
             : self->spawn(http_client_for_several, env, web, entry);
}

caf::result<mcp_client_actor> client_registry_state::client_of(const std::string& server) {
  if (stopping) {
    return to_caf(errc::closed, "the MCP servers are being stopped");
  }
  const auto* entry = catalogue->find(server);
  if (entry == nullptr) {
    return to_caf(unknown_server(server));
  }
  if (shared.has && !shared.registry && entry->name != server) {
    // What is an alias here may be a name where there are other servers besides.
    return to_caf(errc::not_found, fmt::format("there is no MCP server \"{}\"", server));
  }
  auto& client = clients[entry->name];
  if (!client.handle) {
    client = {spawn_client(*entry), *entry};
    self->monitor(client.handle);
  }
  note_user(client);
  return client.handle;
}

void client_registry_state::client_died(const caf::down_msg& down) {
  auto found = std::find_if(clients.begin(), clients.end(), [&](const auto& entry) {
    return entry.second.handle.address() == down.source;
  });
  if (found == clients.end()) {
    user_gone(down.source);
    return;
  }
  if (!stopping) {
    env->log->error("the client of MCP server \"{}\" ended: {}", found->first,
                    caf::to_string(down.reason));
  }
  clients.erase(found);
}

caf::result<std::vector<client_status>> client_registry_state::status() {
  auto promise = self->make_response_promise<std::vector<client_status>>();
  auto collection = std::make_shared<status_collection>();
  collection->promise = promise;
  collection->missing = clients.size();
  if (clients.empty()) {
    promise.deliver(std::vector<client_status>{});
  }
  for (const auto& [name, client] : clients) {
    self->request(client.handle, status_time, status_atom::value)
        .then([collection,
               name = name](client_status& status) { collection->add(name, std::move(status)); },
              [collection, name = name](const caf::error& reason) {
                client_status status;
                status.server = name;
                status.state = "failed";
                status.last_error = from_caf(reason, "ask for its status").message;
                collection->add(name, std::move(status));
              });
  }
  return promise;
}

caf::result<caf::ok_atom> client_registry_state::stop() {
  auto promise = self->make_response_promise<caf::ok_atom>();
  stop_promises.push_back(promise);
  if (stopping) {
    return promise;
  }
  stopping = true;
  std::vector<std::pair<std::string, mcp_client_actor>> living;
  for (const auto& [name, client] : clients) {
    living.emplace_back(name, client.handle);
  }
  for (const auto& [number, client] : retired) {
    living.emplace_back(client.entry.name, client.handle);
  }
  still_stopping = living.size() + 1;
  for (const auto& [name, client] : living) {
    self->request(client, stop_time, stop_atom::value)
        .then([this](caf::ok_atom) { client_stopped(); },
              [this, name = name, client = client](const caf::error& reason) {
                env->log->error("stop MCP server \"{}\": {}", name,
                                from_caf(reason, "no answer").message);
                caf::anon_send_exit(client, caf::exit_reason::kill);
                client_stopped();
              });
  }
  client_stopped();
  return promise;
}

void client_registry_state::client_stopped() {
  if (--still_stopping > 0) {
    return;
  }
  for (auto& promise : stop_promises) {
    promise.deliver(caf::ok_atom::value);
  }
  clients.clear();
  retired.clear();
  self->quit();
}

client_registry_impl_actor::behavior_type client_registry_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { client_died(down); });
  self->set_exit_handler([this](const caf::exit_msg& message) {
    // Without the registry nobody could stop them.
    for (const auto& [name, client] : clients) {
      caf::anon_send_exit(client.handle, caf::exit_reason::user_shutdown);
    }
    for (const auto& [number, client] : retired) {
      caf::anon_send_exit(client.handle, caf::exit_reason::user_shutdown);
    }
    self->quit(message.reason);
  });
  return {
      [this](catalogue_atom) { return catalogue; },
      [this](client_atom, const std::string& server) { return client_of(server); },
      [this](catalogue_atom, catalogue_ptr& configured) { configure(std::move(configured)); },
      [this](status_atom) { return status(); },
      [this](stop_atom) { return stop(); },
      [this](tick_atom, std::uint64_t number) { stop_retired(number); },
  };
}

client_registry_impl_actor::behavior_type
client_registry(client_registry_impl_actor::stateful_pointer<client_registry_state> self,
                environment_ptr env, process_host_actor processes, mcp_http_services web,
                catalogue_ptr configured) {
  auto& state = self->state;
  state.env = std::move(env);
  state.processes = std::move(processes);
  state.web = std::move(web);
  state.configure(std::move(configured));
  return state.make_behavior();
}

client_registry_impl_actor::behavior_type
sharing_registry(client_registry_impl_actor::stateful_pointer<client_registry_state> self,
                 environment_ptr env, process_host_actor processes, mcp_http_services web,
                 catalogue_ptr configured, shared_services shared) {
  self->state.shared = std::move(shared);
  return client_registry(self, std::move(env), std::move(processes), std::move(web),
                         std::move(configured));
}

} // namespace bulkhead
