#pragma once

#include <string>
#include <vector>

#include "actors/container_removal.hpp"

/// A container's start and end by the driver that was found (`runtime_report::driver`).

namespace bulkhead {

inline constexpr const char* cli_driver = "cli";
inline constexpr const char* rest_driver = "rest";

/// Starts a container that runs `command`; `owner` gets the events of the child whose stdio is the
/// program's. Errors: unavailable or invalid_argument; then nothing is
/// left.
task<expected<container_record>>
start_container(driver_context& context, const runtime_facts& facts, container_request request,
                cgroup_limits limits, std::vector<std::string> command, stdio_owner owner);

/// Sets the exact limits where they could not be set before; see confine_run_cgroups.
expected<void> confine_container(driver_context& context, const runtime_facts& facts,
                                 const container_record& record);

/// See remove_container.
task<expected<void>> end_container(driver_context& context, const runtime_facts& facts,
                                   container_record record);

/// See ran_out_of_memory.
task<bool> killed_for_memory(driver_context& context, const runtime_facts& facts,
                             container_handle handle);

} // namespace bulkhead
