#pragma once

#include "actors/driver_context.hpp"
#include "actors/runtime_probe.hpp"

namespace bulkhead {

/// Reads every constraint back from inside a container that uses its limits up. Errors:
/// unavailable.
task<expected<runtime_report>> probe_constraints(driver_context& context, facts_ptr facts);

} // namespace bulkhead
