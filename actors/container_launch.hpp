#pragma once

#include <string>
#include <vector>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

namespace bulkhead {

/// A container that is about to be started.
struct container_launch {
  process_spec process;
  container_handle handle; ///< child and pid still missing
  cgroup_limits limits;    ///< the exact ones
};

/// The limits that the settings ask for.
cgroup_limits configured_limits(const settings& config);

/// What a container of these settings is made of, checked. Errors: invalid_argument.
expected<container_spec> plan_container(const driver_context& context, const std::string& id,
                                        const std::string& folder, const cgroup_limits& limits,
                                        std::vector<std::string> command);

/// Makes ready what all containers need; quick when it is. Call it before `prepare_launch`. Errors:
/// unavailable.
task<expected<void>> ready_to_launch(driver_context& context, const runtime_facts& facts);

/// Builds the command line of a container and makes its cgroups. Errors: unavailable or
/// invalid_argument; then nothing is left.
expected<container_launch> prepare_launch(driver_context& context, const runtime_facts& facts,
                                          const std::string& id, const std::string& folder,
                                          const cgroup_limits& limits,
                                          std::vector<std::string> command);

/// What it means that a container's command ended before its program said anything.
error explain_start_failure(const driver_context& context, const runtime_facts& facts,
                            std::int32_t exit_code, std::string_view err);

/// The container's id, from the file that the engine writes into the run's folder; empty before
/// that.
std::string read_container_id(const std::string& folder);

/// Did conmon say that the kernel killed something in the container for want of memory?
bool out_of_memory_was_seen(const std::string& folder);

/// The name of a container, and of its cgroups below a base: both tell whose they are.
std::string container_name(const std::string& id);
cgroup_name cgroup_named(const std::string& instance, const std::string& id);

} // namespace bulkhead
