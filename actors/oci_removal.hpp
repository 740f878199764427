#pragma once

#include <cstdint>
#include <string>

#include "actors/container_removal.hpp"

namespace bulkhead {

/// `remove_container` for one that no engine knows. Costs no process when it has ended by itself
/// and nobody but we made its cgroup: killing its first process is its end, and what the OCI
/// runtime noted of it lies in the run's folder.
task<expected<void>> remove_bundle(driver_context& context, const runtime_facts& facts,
                                   container_record record);

/// What became of `delete_containers`.
struct deletion {
  std::uint32_t deleted = 0;
  std::string failure; ///< empty: none is left
};

/// Ends and removes all containers that have notes in a run's folder, by the OCI runtime that wrote
/// them. `binary` is the one in use, or empty.
task<deletion> delete_containers(driver_context& context, std::string binary, std::string folder);

} // namespace bulkhead
