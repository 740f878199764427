#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// Reads the configuration anew when its files have changed, on a thread of its own.
using configuration_keeper_actor = caf::typed_actor<
    /// Files may have changed.
    caf::reacts_to<catalogue_atom>>;

/// What was read, and the files and folders that this depends on.
struct configuration_reading {
  catalogue_ptr catalogue;
  std::vector<std::string> dependencies;
};

/// What a keeper works with.
struct keeper_context {
  environment_ptr env;
  std::shared_ptr<current_catalogue> configured;
  std::function<client_registry_actor()> registry; ///< the current one: it may be started again
  std::function<configuration_reading()> read;
  std::function<void(std::vector<std::string> paths)> watch; ///< these from now on
};

struct configuration_keeper_state {
  explicit configuration_keeper_state(configuration_keeper_actor::pointer self);
  configuration_keeper_actor::behavior_type make_behavior();

  void read();

  configuration_keeper_actor::pointer self;
  keeper_context context;

  static inline const char* name = "configuration-keeper";
};

/// Spawn it detached: it reads files.
configuration_keeper_actor::behavior_type
configuration_keeper(configuration_keeper_actor::stateful_pointer<configuration_keeper_state> self,
                     keeper_context context);

/// What became of the servers, in one line for the log.
std::string describe_change(const server_catalogue& before, const server_catalogue& after);

} // namespace bulkhead
