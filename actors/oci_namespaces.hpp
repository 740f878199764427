#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// The namespaces that rootless containers are made from. An OCI runtime that gives a container
/// the account's sub-uids, and not the account itself, has to be root over both: it runs in the
/// user namespace that podman gives the account. A process of ours keeps that open, together with a
/// mount namespace in which the unpacked images lie at a place that the container's root can reach,
/// wherever the account's own folders are and whoever may enter them. Entering costs each start one
/// exec (nsenter) and no podman. The holder waits for the lock of this instance, so that it ends
/// with us however we end.

namespace bulkhead {

/// Starts the holder unless it lives (or the containers are rootful). All who ask while one starts
/// share it. Errors: unavailable.
task<expected<void>> hold_namespaces(driver_context& context, const runtime_facts& facts);

/// A command as it runs in them; unchanged for rootful containers. Call it after
/// `hold_namespaces`.
std::vector<std::string> within_namespaces(const driver_context& context,
                                           const runtime_facts& facts,
                                           std::vector<std::string> argv);

/// Does the complaint of a command that was run in them, and whose program hasn't begun, say that
/// the holder had just gone? A command with the next holder may work.
bool missed_the_holder(const driver_context& context, std::string_view complaint);

/// A folder over which the store of unpacked images can be mounted there, in the mount namespace
/// alone: one that exists on every system and holds nothing that a container is made from. Empty
/// when there is none.
std::string mount_place(const driver_context& context, const std::vector<std::string>& in_use);

} // namespace bulkhead
