#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/mcp_http_link.hpp"
#include "actors/shared_client.hpp"

namespace bulkhead {

/// The registry with the timer it sends itself: a retired client's time is up.
using client_registry_impl_actor =
    client_registry_actor::extend<caf::reacts_to<tick_atom, std::uint64_t>>;

/// Which MCP servers exist, and the one client of each. What happens to one client concerns no
/// other: a client that dies is made anew when it is asked for. A client whose entry isn't what it
/// was is retired: nobody gets it any more, and it is stopped when those who have it are gone, or
/// after ten minutes.
struct client_registry_state {
  explicit client_registry_state(client_registry_impl_actor::pointer self);
  client_registry_impl_actor::behavior_type make_behavior();

  /// A client, what it was made from, and who was given it.
  struct known_client {
    mcp_client_actor handle;
    server_entry entry;
    std::set<caf::actor_addr> users = {};
  };

  void configure(catalogue_ptr configured);
  void retire(known_client client);
  void stop_retired(std::uint64_t number);
  void user_gone(const caf::actor_addr& user);
  void note_user(known_client& client);
  caf::result<mcp_client_actor> client_of(const std::string& server);
  mcp_client_actor spawn_client(const server_entry& entry);
  mcp_client_actor spawn_shared(const server_entry& entry);
  caf::result<std::vector<client_status>> status();
  caf::result<caf::ok_atom> stop();
  void client_died(const caf::down_msg& down);
  void client_stopped();
  bool is_shared(const server_entry& entry) const { return shared.has && shared.has(entry); }
  error unknown_server(const std::string& server) const;

  client_registry_impl_actor::pointer self;
  environment_ptr env;
  process_host_actor processes;
  mcp_http_services web;                         ///< for servers that aren't started here
  shared_services shared;                        ///< of several tenants
  catalogue_ptr all;                             ///< as configured
  catalogue_ptr catalogue;                       ///< what policy allows of it
  std::map<std::string, known_client> clients;   ///< by raw name
  std::map<std::uint64_t, known_client> retired; ///< in the order in which they were
  std::uint64_t last_retired = 0;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stop_promises;
  bool stopping = false;
  std::size_t still_stopping = 0;

  static inline const char* name = "client-registry";
};

/// `configured` holds every server of the configuration files; policy is applied here.
client_registry_impl_actor::behavior_type
client_registry(client_registry_impl_actor::stateful_pointer<client_registry_state> self,
                environment_ptr env, process_host_actor processes, mcp_http_services web,
                catalogue_ptr configured);

/// As that; some of the servers are those of several tenants.
client_registry_impl_actor::behavior_type
sharing_registry(client_registry_impl_actor::stateful_pointer<client_registry_state> self,
                 environment_ptr env, process_host_actor processes, mcp_http_services web,
                 catalogue_ptr configured, shared_services shared);

} // namespace bulkhead
