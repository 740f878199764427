#pragma once

#include <cstdint>
#include <string>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

namespace bulkhead {

/// A container of ours while it exists.
struct container_record {
  container_handle handle;
  std::uint64_t start_time =
      0; ///< of the command line's process; tells it from a later one of that pid
  cgroup_limits limits;
  bool booted = false;
  /// The cgroup folders (v1) in which the OCI runtime makes the container's own.
  std::vector<std::string> outer_cgroups;
  std::uint64_t service = 0; ///< which of podman's services has made it; 0: none
};

/// Who gets the events of the child whose stdio is a container's: an actor, or one of the driver's
/// probes, which is made known to the driver before the first event.
struct stdio_owner {
  child_owner_actor actor;
  probe_session* probe = nullptr;
};

/// Ends a container and removes all of it: its process, the engine's and the OCI runtime's records,
/// and its cgroups. Costs no process when the command line has ended by itself and nothing is left.
/// Idempotent. `thorough`: looks for what is left even where the engine knows of nothing. Errors:
/// unavailable after several attempts (some 60 s at worst), naming what remains.
task<expected<void>> remove_container(driver_context& context, const runtime_facts& facts,
                                      container_record record, bool thorough = false);

/// Was the container's program killed for want of memory? Asked after it ended with 137, before
/// removal.
task<bool> ran_out_of_memory(driver_context& context, const runtime_facts& facts,
                             container_handle handle);

/// Removes cgroups of ours with all processes in them; false when something keeps them.
task<bool> clear_cgroups(driver_context& context, const engine_profile& engine,
                         std::vector<std::string> folders);

} // namespace bulkhead
