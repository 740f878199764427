#pragma once

#include <memory>
#include <string>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

namespace bulkhead {

using facts_ptr = std::shared_ptr<const runtime_facts>;

/// Finds the engine, checks that it may be used, that the image is there and which OCI runtime and
/// limits really work, by running a container; or takes what an earlier probe found (unless
/// `afresh`). Errors: unavailable, each with its remedy; nothing is kept of them.
task<expected<facts_ptr>> find_runtime(driver_context& context, bool afresh);

} // namespace bulkhead
