#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/cgroup_v1.hpp"
#include "actors/container_brake.hpp"
#include "actors/runtime_facts.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// What a full probe saw, inside its container and on the host.
struct constraint_evidence {
  cgroup_limits limits;                     ///< what the probe's container was limited to
  std::optional<std::uint32_t> uid_on_host; ///< of the container's first process
  std::uint32_t account = 0;                ///< our own uid
  std::optional<std::uint64_t> threads;     ///< started before the pids limit stopped it
  std::uint64_t threads_asked = 0;
  bool killed = false;                ///< by using up twice its memory limit
  bool kill_was_told = false;         ///< the engine said that it was for want of memory
  brake_kind idle = brake_kind::none; ///< what an interpreter between two runs is kept from work by
};

/// Judges each constraint of the sandbox by `inside`, the probe's answer to `facts`.
std::vector<constraint_row> constraint_rows(const settings& config, const runtime_facts& facts,
                                            const nlohmann::json& inside,
                                            const constraint_evidence& evidence,
                                            const std::string& limits_remedy);

} // namespace bulkhead
