#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

enum class container_engine : std::uint8_t { podman, docker };

/// A folder of the host inside the container.
struct container_mount {
  std::string source;
  std::string target;
  bool read_only = true;
  friend bool operator==(const container_mount&, const container_mount&) = default;
};

/// All that a sandbox's container is made of. Security constraints that hold for every container
/// have no field here: they can't be switched off.
struct container_spec {
  std::string name;
  std::string image;
  std::string instance; ///< the owner label's value
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  std::uint64_t memory = 0; ///< bytes
  std::uint32_t pids = 0;
  std::optional<double> cpus;
  std::uint64_t tmp_size = 64ULL << 20;        ///< bytes
  std::uint64_t workspace_size = 128ULL << 20; ///< bytes
  std::string seccomp_profile;                 ///< a path
  std::string cid_file;                        ///< a path, or empty
  /// Seconds after which podman kills the container even if we died; 0: no such limit. A last
  /// resort: it must be longer than any run or session may take.
  std::uint32_t max_lifetime = 0;
  std::vector<container_mount> mounts;
  std::vector<std::string> command;
  friend bool operator==(const container_spec&, const container_spec&) = default;
};

/// The engine a command line is written for and what a probe found out about it.
struct engine_profile {
  container_engine engine = container_engine::podman;
  std::string binary = "podman";
  std::string oci_runtime; ///< its name or path; empty: the engine's default
  bool rootless = true;
  /// podman as the client of a service or machine, where some flags don't exist.
  bool remote = false;
  /// --memory, --pids-limit and --cpus are enforced by the engine itself. Where they aren't
  /// (rootless on cgroup v1), podman would only complain on stderr: they are left out.
  bool limit_flags = true;
  /// RLIMIT_NOFILE and RLIMIT_NPROC inside. Neither may be over the caller's own hard limit, or the
  /// start fails. Without a user namespace for each container (all but rootless podman), nproc
  /// counts the processes of all containers together.
  std::uint64_t nofile = 1024;
  std::uint64_t nproc = 4096;
};

/// What code in the sandbox finds in its environment; the guest adds nothing from the host.
inline constexpr std::array<std::string_view, 7> sandbox_environment = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/workspace",
    "LANG=C.UTF-8",
    "TMPDIR=/tmp",
    "MPLCONFIGDIR=/tmp/matplotlib", // it wants a folder that it can make or write
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONNOUSERSITE=1",
};

/// A folder of shared memory, needed by multiprocessing's locks and queues, in bytes.
inline constexpr std::uint64_t shm_size = 64ULL << 20;

/// The largest file that a sandbox may write, in bytes: no file is larger than the largest folder;
/// this bounds what one may grow to in a mount.
std::uint64_t largest_file(const container_spec& spec);

/// The label that marks every container of ours; its value is the instance.
inline constexpr const char* owner_label = "org.bulkhead.instance";

/// Checks what `run_arguments` relies on: a name and label of letters, digits and `_.-`; an image
/// reference; a user and group other than 0; memory and pids limits; absolute paths without control
/// characters; mounts that hide nothing of the sandbox's own. Errors: invalid_argument naming the
/// field. Call it before every `run_arguments` whose spec holds anything from outside.
expected<void> check_container_spec(const container_spec& spec);

/// `podman run -i --rm …` or `docker run -i --rm …`, argv complete. Paths with commas, colons,
/// quotes or spaces are encoded; docker can't make bind mounts nosuid, nodev or noexec, nor leave
/// out volumes that an image declares.
std::vector<std::string> run_arguments(const engine_profile& engine, const container_spec& spec);

/// Force removal by name, without waiting for a grace time, anonymous volumes included. podman
/// answers 0 if there is none of that name; docker before 23 answers 1.
std::vector<std::string> remove_arguments(const engine_profile& engine, const std::string& name);

/// Lists "name instance" of all containers of ours, running or not, whoever owns them, one a line.
std::vector<std::string> list_arguments(const engine_profile& engine);

} // namespace bulkhead
