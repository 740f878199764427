#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// What a probe found out is kept in a file, so that later starts need not run a container to know.
/// Whatever may change the findings is part of the key; an error is never kept.

namespace bulkhead {

/// XDG_CACHE_HOME/bulkhead, or the same below ~/.cache.
std::string cache_folder(const environment& env);

/// XDG_CACHE_HOME/bulkhead/probe.json, or the same below ~/.cache.
std::string probe_cache_path(const environment& env);

/// Engine and OCI runtimes (path, size, time of change), image, boot, account, cgroups, the
/// settings that matter and our own version.
nlohmann::json probe_cache_key(const driver_context& context, const engine_profile& engine,
                               const std::string& image_id);

/// The findings kept under `key`; nothing when there are none or the file is not of this account
/// alone.
std::optional<runtime_facts> load_probe(const driver_context& context, const nlohmann::json& key);

/// Keeps findings; a cache that can't be written is only logged.
void store_probe(const driver_context& context, const nlohmann::json& key,
                 const runtime_facts& facts);

/// What sandboxes are made from, by the times of the files that hold it: the engine's list of
/// images, the engine, the OCI runtime. An engine whose files can't be seen (docker) gives the id
/// that was probed.
std::string sandbox_stamp(const driver_context& context, const runtime_facts& facts);

void forget_probe(const driver_context& context);

} // namespace bulkhead
