#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cgroup_v1.hpp"
#include "actors/messages.hpp"
#include "protocol/container_spec.hpp"

namespace bulkhead {

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
  bool own_service = false; ///< by REST: the account's own service doesn't do
};

} // namespace bulkhead
