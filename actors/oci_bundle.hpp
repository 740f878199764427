#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// A container without an engine's command: what of it lies in the run's folder, which is all that
/// there is of it on disk.
///
///   config.json   what the OCI runtime is told
///   cid           the container's id, 64 hex digits, as engines write it
///   pid           of its first process, once it runs
///   oci/ID        the OCI runtime's own notes
///   kills         how often the kernel had killed something in its cgroup when it had booted

namespace bulkhead {

/// Writes the bundle of a container into `folder`; answers the command that starts it. The command
/// ends when the container runs and leaves its stdio to it, see `pid_file`: an idle sandbox has no
/// process but its own two (runc in the foreground would keep some 10 MB for each, and can't have
/// stdio without owning it). Errors: unavailable, malformed (the seccomp profile).
expected<std::vector<std::string>> write_bundle(const driver_context& context,
                                                const runtime_facts& facts,
                                                const container_spec& spec,
                                                const std::string& folder);

std::string pid_file(const std::string& folder);
std::string runtime_root(const std::string& folder);

/// A container as the OCI runtime has noted it.
struct oci_container {
  std::string id;
  std::string runtime; ///< runc or crun, by the form of the notes; empty: neither's
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;
};

/// The containers that have notes in the run's folder; at most one, unless someone else wrote
/// there.
std::vector<oci_container> noted_containers(const std::string& folder);

/// Notes how often the kernel has killed in the container's cgroup, and in those above it, so that
/// later `memory_kills_were_counted` can tell what is new. For a container that runs.
void note_memory_kills(const driver_context& context, const std::string& folder);

/// Has the kernel killed something for want of memory since then? Where the cgroup itself has gone
/// with its last process (a scope of systemd's), the next one above that is still there tells,
/// since it counts what happens below it; a neighbour that is killed at the same moment is then
/// taken for ours.
bool memory_kills_were_counted(const std::string& folder);

} // namespace bulkhead
