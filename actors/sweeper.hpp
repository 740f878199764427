#pragma once

#include "actors/driver_context.hpp"
#include "actors/runtime_probe.hpp"

namespace bulkhead {

/// Removes what instances of this account left that are dead: their containers (also those that
/// only the OCI runtime lists), cgroups, upstream server processes and folders. What belongs to a
/// living instance, to another account, or to an instance that was started within the last ten
/// seconds is never touched. A part that fails is logged and tried again by the next sweep.
task<sweep_report> sweep(driver_context& context, facts_ptr facts);

} // namespace bulkhead
