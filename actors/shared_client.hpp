#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// What several tenants share of MCP servers.
struct shared_services {
  /// Is a server of the catalogue one of them? Null: none is.
  std::function<bool(const server_entry& entry)> has;
  /// The registry that runs them, as it is when asked; its answer may be null. Null: they are run
  /// here, for others.
  std::function<client_registry_actor()> registry;
  /// Counts up: calls of all tenants have an id of their own.
  std::function<std::uint64_t()> new_call;
};

/// Takes the place of a client, and of whoever calls a tool.
using shared_client_impl_actor = mcp_client_actor::extend_with<tool_caller_actor>;

/// One tenant's way to a server that is run for several. It alone is known to the server's client:
/// there it is the tenant, whose calls take turns with the others', and whose progress comes back
/// here. Nobody can be asked, since the server doesn't know whose call it is.
struct shared_client_state {
  explicit shared_client_state(shared_client_impl_actor::pointer self);
  shared_client_impl_actor::behavior_type make_behavior();

  /// A call without an answer.
  struct open_call {
    std::uint64_t caller_id = 0;
    std::string what; ///< for errors
    tool_caller_actor caller;
    memory_budget::share held; ///< for the arguments
    caf::typed_response_promise<std::string> promise;
    mcp_client_actor sent_to; ///< null: not yet
  };

  using use_client = std::function<void(const mcp_client_actor&)>;
  using take_failure = std::function<void(const error&)>;

  caf::result<documents_ptr> documents_for(deadline due);
  caf::result<std::string> call(tool_call& request);
  void cancel(std::uint64_t caller_id);
  caf::result<client_status> status();
  void stop();

  void find(use_client use, take_failure refuse);
  void with_client(use_client use, take_failure refuse);
  void take_client(const mcp_client_actor& client);
  void send(std::uint64_t id, const mcp_client_actor& client, tool_call request);
  void fail(std::uint64_t id, const error& reason);
  documents_ptr as_ours(const documents_ptr& shared);
  void take_progress(tool_progress& progress);
  std::chrono::nanoseconds patience_until(deadline due);

  shared_client_impl_actor::pointer self;
  environment_ptr env;
  shared_services services;
  server_entry entry;
  mcp_client_actor client; ///< of the server; null: to be asked for
  std::map<std::uint64_t, open_call> calls;
  std::unordered_map<std::uint64_t, std::uint64_t> by_caller; ///< ids, by the caller's
  std::shared_ptr<memory_budget> arguments;                   ///< of open calls
  documents_ptr theirs;                                       ///< as they came last
  documents_ptr ours;                                         ///< the same as the tenant sees them
  bool stopping = false;

  static inline const char* name = "shared-client";
};

/// `entry` is the server in the tenant's catalogue.
shared_client_impl_actor::behavior_type
shared_client(shared_client_impl_actor::stateful_pointer<shared_client_state> self,
              environment_ptr env, shared_services services, server_entry entry);

} // namespace bulkhead
