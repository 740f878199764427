#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/host_view.hpp"
#include "actors/messages.hpp"
#include "protocol/container_spec.hpp"
#include "protocol/error.hpp"

namespace bulkhead {

/// The last line of an engine's stderr that says why it failed, without podman's "Error: "; a line
/// of its log only if there is no other. Control characters are left out and it is cut at 400
/// bytes.
std::string engine_complaint(std::string_view err);

/// Does podman say that its records name running containers, and none of their processes is left?
/// It comes when all processes of an account are killed at once and its runtime folder outlives
/// them. Every command fails then, until podman's own remedy: podman system migrate.
bool says_processes_are_lost(std::string_view err);

/// Is it one that podman and docker give for their own failures? A program may end with it, too.
constexpr bool is_engine_exit_code(std::int32_t code) {
  return code >= 125 && code <= 127;
}

/// What an engine's failure means to the user: unavailable, with the remedy where the complaint is
/// a known one. `action` says what failed, e.g. "start a sandbox".
error explain_engine_failure(std::string_view action, const engine_profile& engine,
                             const host_view& host, std::int32_t exit_code, std::string_view err);

/// The same for what podman's service answers.
error explain_service_failure(std::string_view action, const host_view& host,
                              std::string_view complaint);

/// The same for an OCI runtime of that name which was started without an engine.
error explain_oci_failure(std::string_view action, std::string_view name, const host_view& host,
                          std::int32_t exit_code, std::string_view err);

/// Does the complaint say that the OCI runtime or the cgroups refuse this host (rather than this
/// one container)? Then another OCI runtime, or running without the engine's limits, may work.
bool is_host_refusal(std::int32_t exit_code, std::string_view err);

/// Does it say that a cgroup controller isn't delegated to this account?
bool is_missing_controller(std::string_view err);

} // namespace bulkhead
