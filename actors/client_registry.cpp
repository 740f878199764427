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

} // namespace

client_registry_state::client_registry_state(client_registry_actor::pointer self) : self{self} {}

void client_registry_state::configure(catalogue_ptr configured) {
  catalogue = allowed_part(*configured);
  all = std::move(configured);
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

caf::result<mcp_client_actor> client_registry_state::client_of(const std::string& server) {
  if (stopping) {
    return to_caf(errc::closed, "the MCP servers are being stopped");
  }
  const auto* entry = catalogue->find(server);
  if (entry == nullptr) {
    return to_caf(unknown_server(server));
  }
  auto& client = clients[entry->name];
  if (!client) {
    client = entry->transport == server_transport::stdio
                 ? mcp_client_actor{self->spawn(mcp_client, env, processes, *entry)}
                 : mcp_client_actor{self->spawn(mcp_http_client, env, web, *entry)};
    self->monitor(client);
  }
  return client;
}

void client_registry_state::client_died(const caf::down_msg& down) {
  auto found = std::find_if(clients.begin(), clients.end(), [&](const auto& entry) {
    return entry.second.address() == down.source;
  });
  if (found == clients.end()) {
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
    self->request(client, status_time, status_atom::value)
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
  still_stopping = clients.size() + 1;
  for (const auto& [name, client] : clients) {
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
  self->quit();
}

client_registry_actor::behavior_type client_registry_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { client_died(down); });
  self->set_exit_handler([this](const caf::exit_msg& message) {
    // Without the registry nobody could stop them.
    for (const auto& [name, client] : clients) {
      caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    }
    self->quit(message.reason);
  });
  return {
      [this](catalogue_atom) { return catalogue; },
      [this](client_atom, const std::string& server) { return client_of(server); },
      [this](catalogue_atom, catalogue_ptr& configured) { configure(std::move(configured)); },
      [this](status_atom) { return status(); },
      [this](stop_atom) { return stop(); },
  };
}

client_registry_actor::behavior_type
client_registry(client_registry_actor::stateful_pointer<client_registry_state> self,
                environment_ptr env, process_host_actor processes, mcp_http_services web,
                catalogue_ptr configured) {
  auto& state = self->state;
  state.env = std::move(env);
  state.processes = std::move(processes);
  state.web = std::move(web);
  state.configure(std::move(configured));
  return state.make_behavior();
}

} // namespace bulkhead
