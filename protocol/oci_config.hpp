#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/container_spec.hpp"
#include "protocol/error.hpp"

/// A container as an OCI runtime (crun, runc) wants it described: config.json of a bundle, after
/// the OCI runtime specification 1.0 (opencontainers/runtime-spec: config.md, config-linux.md).
/// Made from the same `container_spec` as the command line of an engine, so that the constraints
/// are described once; what podman makes of that command line is what is written here.

namespace bulkhead {

/// Who takes care of a container's cgroup.
enum class cgroup_manager : std::uint8_t {
  none,    ///< nobody: no limits
  joined,  ///< we do: the runtime is started in one (cgroup v1, delegated)
  files,   ///< the OCI runtime, by folders in the cgroup file system
  systemd, ///< the OCI runtime, by asking the account's systemd for a scope
};

std::string_view to_string(cgroup_manager manager);

/// A range of ids of a user namespace, as they are called in the namespace around it.
struct id_range {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
  friend bool operator==(const id_range&, const id_range&) = default;
};

/// The user namespace of a container within the one of the account, whose /proc/PID/uid_map or
/// gid_map (lines "inside outside count") is given: all that the account has but its own id, so
/// that root inside is its first sub-uid. Several ranges stay apart, since the kernel takes no
/// mapping that spans two. Empty when the account has no sub-ids.
std::vector<id_range> ranges_without_account(std::string_view map);

/// What a bundle needs besides the description of the container.
struct oci_bundle {
  std::string rootfs;         ///< the unpacked image, a path
  std::string init;           ///< a program that reaps orphans and runs what follows "--", a path
  std::vector<id_range> uids; ///< empty: no user namespace (a rootful container)
  std::vector<id_range> gids;
  cgroup_manager manager = cgroup_manager::none; ///< tells whether limits stand in the config
  std::string cgroups_path;                      ///< empty: the runtime chooses
  nlohmann::json seccomp;                        ///< see `oci_seccomp`
};

/// Where the init program is mounted in the container.
inline constexpr const char* init_in_container = "/run/bulkhead-init";

/// config.json of a container. `spec` has passed `check_container_spec`; its image, name and cid
/// file don't matter here. Memory in `spec` counts swap in.
nlohmann::json oci_config(const engine_profile& engine, const container_spec& spec,
                          const oci_bundle& bundle);

/// A seccomp profile of the kind that engines read (archMap, includes.arches, comments), as an OCI
/// runtime wants it for a machine. `machine` is what uname(2) says, e.g. "x86_64". Errors:
/// malformed, when it isn't such a profile, holds conditions other than architectures, or doesn't
/// know the machine: nothing is left out silently.
expected<nlohmann::json> oci_seccomp(std::string_view profile, std::string_view machine);

/// The command that makes and starts the container `id` from the bundle in `folder`, and ends when
/// it runs: its first process keeps the stdio, and its pid is in `pid_file`. `binary` is crun's or
/// runc's path (they share these options); `root` the folder for the runtime's state.
std::vector<std::string> oci_run_arguments(const std::string& binary, cgroup_manager manager,
                                           const std::string& root, const std::string& folder,
                                           const std::string& pid_file, const std::string& id);

/// The command that ends and removes it, running or not, known or not.
std::vector<std::string> oci_delete_arguments(const std::string& binary, const std::string& root,
                                              const std::string& id);

/// Why an OCI runtime failed, from its stderr: the message of its last line, without runc's time
/// and level. Control characters are left out and it is cut at 400 bytes.
std::string oci_complaint(std::string_view err);

} // namespace bulkhead
