#pragma once

#include <string>
#include <vector>

#include "actors/container_removal.hpp"
#include "actors/rest_service.hpp"

/// Containers by podman's REST service: no process of an engine's command each.

namespace bulkhead {

/// Creates and starts a container that runs `command` and attaches to it; `owner` (null: the
/// driver) gets its events. Errors: unavailable or invalid_argument; then nothing is left.
task<expected<container_record>> start_by_rest(driver_context& context, const runtime_facts& facts,
                                               container_request request, cgroup_limits limits,
                                               std::vector<std::string> command, stdio_owner owner);

/// Ends a container and removes all of it, as `remove_container` does; by the engine's command only
/// where the service is at its wits' end or has lost the container.
task<expected<void>> remove_by_rest(driver_context& context, const runtime_facts& facts,
                                    container_record record);

/// Was the container's program killed for want of memory? Asked after it ended with 137, before
/// removal.
task<bool> ran_out_of_memory_by_rest(driver_context& context, const runtime_facts& facts,
                                     container_handle handle);

} // namespace bulkhead
