#pragma once

#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/artifact_folder.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// The store with the timer it sends itself.
using artifact_store_impl_actor = artifact_store_actor::extend<
    /// What is too old goes.
    caf::reacts_to<tick_atom>>;

/// Keeps what runs leave, in STATE_DIR/artifacts (see artifact_folder): a day, within the quota. In
/// production it is spawned detached, since it waits for the disk.
struct artifact_store_state {
  explicit artifact_store_state(artifact_store_impl_actor::pointer self);
  artifact_store_impl_actor::behavior_type make_behavior();

  /// Notices when whoever sends a run's things dies.
  void watch(const stored_run& run);
  void lost(const caf::actor_addr& writer);
  void sweep();

  artifact_store_impl_actor::pointer self;
  environment_ptr env;
  std::optional<artifact_folder> folder;
  std::map<std::string, caf::actor_addr> writers; ///< by the run's handle

  static inline const char* name = "artifact-store";
};

artifact_store_impl_actor::behavior_type
artifact_store(artifact_store_impl_actor::stateful_pointer<artifact_store_state> self,
               environment_ptr env);

} // namespace bulkhead
