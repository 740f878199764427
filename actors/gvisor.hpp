#pragma once

#include <string>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// gVisor (runsc) as the OCI runtime of rootless podman. It differs from crun and runc in three
/// ways: podman can't hand it the options that it needs without root, so that it gets a script that
/// adds them; it can't join or limit cgroups; and its file server (the "gofer") opens mounted
/// folders as the container's user 0, so that this sub-uid has to reach them.

namespace bulkhead {

/// What gVisor's own kernel and file server may use on top of a run's limits, where a delegated
/// cgroup holds them all together. Each thread of the guest costs it threads of the host.
inline constexpr std::uint64_t gvisor_memory = 128ULL << 20;
inline constexpr std::uint32_t gvisor_pids = 512;

/// A run's limits with that room and the engine's command line's.
cgroup_limits with_room_for_gvisor(const cgroup_limits& limits);

/// Notes in `facts` whether the settings name gVisor, by its file's name or by what it answers to
/// --version, for rootless podman. It is never chosen where they don't. Errors: unavailable, also
/// for a driver that can't start it.
task<expected<void>> find_gvisor(driver_context& context, runtime_facts& facts);

/// A seccomp profile as gVisor understands it: it answers EPERM whatever errno a rule names, so
/// calls that the profile says don't exist (ENOSYS, which makes libc fall back to another) are left
/// to gVisor's own kernel. Errors: internal.
expected<std::string> profile_for_gvisor(const std::string& profile);

/// Where the script lies: the same for all instances and kept, because podman notes it with each
/// container and needs it for removing what a killed instance left.
std::string gvisor_script(const environment& env);

/// Writes the script that runs `facts.oci_binary` and a copy of the guest's files into the
/// account's cache, and the adapted seccomp profile; `context.folders` names them from then on.
/// Lets the sub-uid of the container's user 0 enter the folders above /ipc's and /projects' on the
/// host, and write in the latter. Does nothing when the OCI runtime isn't gVisor. Errors:
/// unavailable.
task<expected<void>> make_gvisor_ready(driver_context& context, const runtime_facts& facts);

} // namespace bulkhead
