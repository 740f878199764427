#pragma once

#include <string>
#include <vector>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

namespace bulkhead {

/// Finds the engine that the settings name, or podman, or docker, and checks that it may be used by
/// this account and that it has the image; no container is started for that. Fills in what it
/// learns. Errors: unavailable, each with its remedy.
task<expected<void>> find_engine_and_image(driver_context& context, runtime_facts& facts);

/// Runs the engine with `arguments`; answers the first line it writes. Errors: unavailable, also
/// for an exit code other than 0.
task<expected<std::string>> run_engine(driver_context& context, engine_profile engine,
                                       const char* action, std::vector<std::string> arguments);

std::string first_line(const std::string& text);

/// The folder below which rootless podman keeps the state of the OCI runtimes. Without
/// XDG_RUNTIME_DIR it takes the first of these that is the account's own (its GetRuntimeDir,
/// pkg/util); they exist after any command of podman's. Empty if there is none.
std::string rootless_state_folder(const driver_context& context);

} // namespace bulkhead
