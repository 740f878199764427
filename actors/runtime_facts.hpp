#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/cgroup_v1.hpp"
#include "actors/messages.hpp"
#include "protocol/container_spec.hpp"
#include "protocol/oci_config.hpp"

namespace bulkhead {

/// What it takes to run the OCI runtime without an engine's command.
struct oci_facts {
  cgroup_manager manager = cgroup_manager::none;
  std::string store; ///< the folder of unpacked images
  std::string image; ///< the name of the image's folder in it
  /// Where the store is seen from within the account's namespaces (see oci_namespaces.hpp); the
  /// store itself for rootful containers.
  std::string place;
  std::string init; ///< the program that reaps orphans, a path
  std::vector<id_range> uids;
  std::vector<id_range> gids;
  std::string stamp; ///< of the image and programs that this was found out with
};

/// What it takes to run rootless gVisor under podman; see gvisor.hpp.
struct gvisor_facts {
  std::string platform;           ///< of gVisor's kernel; empty: the one it takes by itself
  std::uint32_t outside_root = 0; ///< the uid inside a container that is 0, as the host sees it
};

/// What the driver has found out about the engine; enough to start and remove containers.
struct runtime_facts {
  runtime_report report;
  engine_profile engine;
  std::string oci_binary; ///< path of the OCI runtime; empty under docker
  std::string oci_root;   ///< its state folder: one folder a container; may be empty
  std::string storage;    ///< the engine's folder with one folder a container; may be empty
  std::vector<cgroup_base> cgroup_bases; ///< v1, delegated; empty elsewhere
  std::uint32_t outside_uid = 0;         ///< the guest's uid as the host sees it
  bool memory_enforced = false;
  bool pids_enforced = false;
  std::optional<oci_facts> oci;       ///< nothing: an engine's command line starts the containers
  std::optional<gvisor_facts> gvisor; ///< nothing: another OCI runtime
  bool own_service = false;           ///< by REST: the account's own service doesn't do
};

} // namespace bulkhead
