#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/mcp_http_link.hpp"

namespace bulkhead {

/// Which MCP servers exist, and the one client of each. What happens to one client concerns no
/// other: a client that dies is made anew when it is asked for.
struct client_registry_state {
  explicit client_registry_state(client_registry_actor::pointer self);
  client_registry_actor::behavior_type make_behavior();

  void configure(catalogue_ptr configured);
  caf::result<mcp_client_actor> client_of(const std::string& server);
  caf::result<std::vector<client_status>> status();
  caf::result<caf::ok_atom> stop();
  void client_died(const caf::down_msg& down);
  void client_stopped();
  error unknown_server(const std::string& server) const;

  client_registry_actor::pointer self;
  environment_ptr env;
  process_host_actor processes;
  mcp_http_services web;                           ///< for servers that aren't started here
  catalogue_ptr all;                               ///< as configured
  catalogue_ptr catalogue;                         ///< what policy allows of it
  std::map<std::string, mcp_client_actor> clients; ///< by raw name
  std::vector<caf::typed_response_promise<caf::ok_atom>> stop_promises;
  bool stopping = false;
  std::size_t still_stopping = 0;

  static inline const char* name = "client-registry";
};

/// `configured` holds every server of the configuration files; policy is applied here.
client_registry_actor::behavior_type
client_registry(client_registry_actor::stateful_pointer<client_registry_state> self,
                environment_ptr env, process_host_actor processes, mcp_http_services web,
                catalogue_ptr configured);

} // namespace bulkhead
