#include "actors/gvisor.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include <embedded/guest.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/container_drive.hpp"
#include "actors/runtime_cache.hpp"
#include "actors/shared_folder.hpp"

namespace bulkhead {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto command_budget = 20s;

/// As a word of sh.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) {
    result.append(c == '\'' ? "'\\''" : std::string(1, c));
  }
  return result + '\'';
}

std::string script_text(const std::string& binary, const std::string& platform) {
  // Without root gVisor can neither use cgroups nor make network devices of its own; seccomp
  // profiles it leaves out unless told.
  return fmt::format("#!/bin/sh\nexec {} --ignore-cgroups --network=none --oci-seccomp{} \"$@\"\n",
                     quoted(binary), platform.empty() ? "" : " --platform=" + platform);
}

task<bool> is_gvisor(driver_context& context, std::string name) {
  if (std::filesystem::path{name}.filename().string().starts_with("runsc")) {
    co_return true;
  }
  std::vector<std::string> argv = {context.find_program(name), "--version"};
  if (argv.front().empty()) {
    co_return false;
  }
  auto result = co_await context.run(std::move(argv), command_budget);
  co_return result && result->exit_code == 0 && result->out.starts_with("runsc version");
}

std::string folder_of(const environment& env) {
  return cache_folder(env) + "/gvisor";
}

/// Writes what isn't there already in this form.
expected<void> keep_file(const std::string& path, const std::string& text, mode_t mode) {
  struct stat info {};
  bool as_wanted = ::stat(path.c_str(), &info) == 0 && (info.st_mode & 0777) == mode &&
                   read_small_file(path) == text;
  return as_wanted ? expected<void>{} : write_small_file(path, text, mode);
}

expected<void> keep_folder(const std::string& path, std::filesystem::perms mode) {
  std::error_code failure;
  auto cache = std::filesystem::path{path}.parent_path().parent_path();
  if (std::filesystem::create_directories(cache, failure)) {
    std::filesystem::permissions(cache, std::filesystem::perms::owner_all, failure);
  }
  std::filesystem::create_directories(path, failure);
  if (!failure) {
    std::filesystem::permissions(path, mode, failure);
  }
  return failure ? fail(errc::unavailable,
                        fmt::format("make folder \"{}\" for gVisor: {}; make it writable, or unset "
                                    "MCP_BRIDGE_OCI_RUNTIME",
                                    path, failure.message()))
                 : expected<void>{};
}

/// The guest's files where gVisor's file server may pass: the folder of the instances is nobody
/// else's to enter. One folder for each content, so that versions don't disturb each other.
std::string guest_folder(const environment& env) {
  std::string all;
  for (const auto& file : embedded::guest()) {
    all.append(file.name).append(file.content);
  }
  return fmt::format("{}/guest-{:016x}", folder_of(env), std::hash<std::string>{}(all));
}

expected<void> keep_files(const environment& env, const runtime_facts& facts) {
  auto guest = guest_folder(env);
  auto made = keep_folder(guest, std::filesystem::perms{0755});
  if (made) {
    made =
        keep_file(gvisor_script(env), script_text(facts.oci_binary, facts.gvisor->platform), 0700);
  }
  for (const auto& file : embedded::guest()) {
    if (made) {
      made = keep_file(fmt::format("{}/{}", guest, file.name), std::string{file.content}, 0444);
    }
  }
  return made;
}

/// The seccomp profile as gVisor understands it, in the instance's folder.
expected<void> adapt_profile(instance_folders& folders) {
  auto adapted = profile_for_gvisor(read_small_file(folders.seccomp_profile).value_or(""));
  if (!adapted) {
    return tl::unexpected{adapted.error()};
  }
  auto path = folders.root + "/seccomp-gvisor.json";
  auto kept = keep_file(path, *adapted, 0444);
  if (kept) {
    folders.seccomp_profile = path;
  }
  return kept;
}

} // namespace

expected<std::string> profile_for_gvisor(const std::string& profile) {
  auto parsed = json::parse(profile, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("syscalls") || !parsed["syscalls"].is_array()) {
    return fail(errc::internal, "adapt the seccomp profile to gVisor: it has no list of calls");
  }
  for (auto& rule : parsed["syscalls"]) {
    if (rule.is_object() && rule.value("errnoRet", 0) == ENOSYS) {
      rule["action"] = "SCMP_ACT_ALLOW";
      rule.erase("errnoRet");
    }
  }
  return parsed.dump();
}

cgroup_limits with_room_for_gvisor(const cgroup_limits& limits) {
  return {limits.memory + gvisor_memory, limits.pids + gvisor_pids, limits.cpus};
}

task<expected<void>> find_gvisor(driver_context& context, runtime_facts& facts) {
  const auto& name = context.env->config->oci_runtime;
  bool suits =
      !name.empty() && facts.engine.engine == container_engine::podman && facts.engine.rootless;
  if (suits) {
    suits = co_await is_gvisor(context, name);
  }
  if (!suits) {
    co_return expected<void>{};
  }
  if (context.find_program(name).empty()) {
    co_return fail(errc::unavailable,
                   fmt::format("find gVisor: MCP_BRIDGE_OCI_RUNTIME says \"{}\", which isn't an "
                               "executable on PATH; install it (Debian: apt install runsc) or "
                               "unset the setting",
                               name));
  }
  if (facts.oci || context.env->config->driver == rest_driver) {
    co_return fail(
        errc::unavailable,
        fmt::format("use gVisor (MCP_BRIDGE_OCI_RUNTIME={}): without root it is started by "
                    "podman's command line only; unset {}, or unset MCP_BRIDGE_OCI_RUNTIME",
                    name, facts.oci ? "MCP_BRIDGE_RUNTIME" : "MCP_BRIDGE_DRIVER"));
  }
  std::vector<std::string> argv = {facts.engine.binary, "unshare", "cat", "/proc/self/uid_map"};
  auto map = co_await context.run(std::move(argv), command_budget);
  // Without the account in it (nomap), a container's uid 0 is uid 1 of this map's namespace.
  auto root = map ? map_uid(map->out, 1) : std::nullopt;
  if (!root) {
    co_return fail(errc::unavailable, "use gVisor: podman's user namespace has no sub-uids; see: "
                                      "bulkhead doctor without MCP_BRIDGE_OCI_RUNTIME");
  }
  facts.gvisor = gvisor_facts{{}, *root};
  co_return expected<void>{};
}

std::string gvisor_script(const environment& env) {
  return folder_of(env) + "/runsc";
}

task<expected<void>> make_gvisor_ready(driver_context& context, const runtime_facts& facts) {
  if (!facts.gvisor) {
    co_return expected<void>{};
  }
  if (auto kept = keep_files(*context.env, facts); !kept) {
    co_return kept;
  }
  context.folders.ipc = guest_folder(*context.env);
  if (auto adapted = adapt_profile(context.folders); !adapted) {
    co_return adapted;
  }
  auto file_server = facts.gvisor->outside_root;
  for (const auto& folder : {context.folders.ipc, context.folders.projects}) {
    if (auto reached = let_through(folder, context.host.uid, file_server); !reached) {
      co_return fail(errc::unavailable,
                     fmt::format("use gVisor: its file server, uid {}, has to reach \"{}\": {}; "
                                 "unset MCP_BRIDGE_OCI_RUNTIME to use crun or runc",
                                 file_server, folder, reached.error().message));
    }
  }
  completion<expected<std::string>> granted{[&context, file_server](auto done) {
    context.services.grant_folders(file_server, std::move(done));
  }};
  auto warning = co_await granted;
  co_return warning ? expected<void>{} : tl::unexpected{warning.error()};
}

} // namespace bulkhead
