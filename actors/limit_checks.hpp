#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/host_view.hpp"
#include "actors/runtime_facts.hpp"

namespace bulkhead {

/// Do limits read back from inside (the probe's answer to `limits`) hold what was asked?
bool memory_limit_holds(const nlohmann::json& found, std::uint64_t asked);
bool pids_limit_holds(const nlohmann::json& found, std::uint32_t asked);

/// What to do when limits aren't enforced on this host.
std::string limits_remedy(const runtime_facts& facts, const host_view& host);

} // namespace bulkhead
