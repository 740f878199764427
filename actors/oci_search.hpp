#pragma once

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// What the search for a usable runtime (see runtime_probe.hpp) does when the OCI runtime is to be
/// used without an engine's command. Each does nothing otherwise.

namespace bulkhead {

/// Finds what such containers are made of, before one is tried: the OCI runtimes, the init program,
/// the account's ids, the unpacked image. Fills in `facts.oci`. Errors: unavailable, each with its
/// remedy.
task<expected<void>> prepare_oci(driver_context& context, runtime_facts& facts);

/// Chooses who sets limits, for the try that `facts.engine.limit_flags` describes.
void choose_cgroup_manager(const driver_context& context, runtime_facts& facts);

/// The image is unpacked, and kept for as long as this process lives. Also after a probe whose
/// findings had been kept. Errors: unavailable.
task<expected<void>> make_oci_ready(driver_context& context, runtime_facts& facts);

} // namespace bulkhead
