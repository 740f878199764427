#include "actors/oci_search.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "actors/engine_errors.hpp"
#include "actors/oci_images.hpp"
#include "actors/oci_namespaces.hpp"
#include "actors/runtime_cache.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr auto command_budget = 20s;

/// Where distributions put podman's init program, which isn't on PATH; then others that take the
/// same "--".
constexpr std::array init_programs = {"/usr/libexec/podman/catatonit",
                                      "/usr/local/libexec/podman/catatonit",
                                      "/usr/lib/podman/catatonit",
                                      "/usr/local/lib/podman/catatonit",
                                      "catatonit",
                                      "docker-init",
                                      "tini"};

expected<void> check_runtimes(const driver_context& context) {
  const auto& wanted = context.env->config->oci_runtime;
  if (!wanted.empty()) {
    return !context.find_program(wanted).empty()
               ? expected<void>{}
               : fail(errc::unavailable,
                      fmt::format("find the OCI runtime: MCP_BRIDGE_OCI_RUNTIME says \"{}\", which "
                                  "isn't an executable on PATH; install it or correct the setting",
                                  wanted));
  }
  if (context.find_program("crun").empty() && context.find_program("runc").empty()) {
    return fail(
        errc::unavailable,
        "find an OCI runtime: neither crun nor runc is on PATH; install one (Debian: apt "
        "install crun), or name one in MCP_BRIDGE_OCI_RUNTIME, or unset MCP_BRIDGE_RUNTIME");
  }
  return {};
}

std::string find_init(const driver_context& context) {
  for (const auto* name : init_programs) {
    if (auto path = context.find_program(name); !path.empty()) {
      return path;
    }
  }
  return {};
}

bool systemd_manages(const driver_context& context, bool rootless) {
  std::error_code ignored;
  auto runtime = context.env->variable("XDG_RUNTIME_DIR").value_or("");
  auto sign = rootless ? runtime + "/systemd/private" : context.host.run + "/systemd/system";
  return !(rootless && runtime.empty()) && std::filesystem::exists(sign, ignored);
}

/// The account's ids as containers get them, of the kind that `file` lists.
task<expected<std::vector<id_range>>> find_ranges(driver_context& context,
                                                  const runtime_facts& facts, std::string file) {
  std::vector<std::string> argv = {facts.engine.binary, "unshare", "cat", "/proc/self/" + file};
  auto result = co_await context.run(std::move(argv), command_budget);
  if (!result || result->exit_code != 0) {
    co_return tl::unexpected{explain_engine_failure("enter podman's user namespace", facts.engine,
                                                    context.host, result ? result->exit_code : -1,
                                                    result ? result->err : result.error().message)};
  }
  auto ranges = ranges_without_account(result->out);
  std::uint64_t most = 0;
  for (const auto& range : ranges) {
    most = std::max<std::uint64_t>(most, std::uint64_t{range.inside} + range.count);
  }
  const auto& config = *context.env->config;
  if (most <= std::max(config.container_uid, config.container_gid)) {
    co_return fail(errc::unavailable,
                   fmt::format("map the sandbox's user {0}:{1}: account {2} has too few sub-ids; "
                               "as root: usermod --add-subuids 100000-165535 --add-subgids "
                               "100000-165535 {2}; then: podman system migrate",
                               config.container_uid, config.container_gid, context.host.account));
  }
  co_return ranges;
}

} // namespace

task<expected<void>> prepare_oci(driver_context& context, runtime_facts& facts) {
  if (facts.report.driver != oci_driver) {
    co_return expected<void>{};
  }
  if (auto there = check_runtimes(context); !there) {
    co_return there;
  }
  oci_facts oci;
  oci.init = find_init(context);
  if (oci.init.empty()) {
    co_return fail(errc::unavailable,
                   "find an init program for the sandbox: install catatonit (Debian: apt install "
                   "catatonit), or unset MCP_BRIDGE_RUNTIME");
  }
  oci.store = image_store(*context.env);
  oci.place = facts.engine.rootless ? mount_place(context, {oci.store, oci.init}) : oci.store;
  if (oci.place.empty()) {
    co_return fail(errc::unavailable,
                   "find a place to mount unpacked images at: none of /mnt, /media, /srv and /opt "
                   "is a folder free of Bulkhead's own; make one, or unset MCP_BRIDGE_RUNTIME");
  }
  if (facts.engine.rootless) {
    auto uids = co_await find_ranges(context, facts, "uid_map");
    if (!uids) {
      co_return tl::unexpected{uids.error()};
    }
    auto gids = co_await find_ranges(context, facts, "gid_map");
    if (!gids) {
      co_return tl::unexpected{gids.error()};
    }
    oci.uids = std::move(*uids);
    oci.gids = std::move(*gids);
  }
  facts.oci = std::move(oci);
  auto ready = co_await make_oci_ready(context, facts);
  co_return ready;
}

void choose_cgroup_manager(const driver_context& context, runtime_facts& facts) {
  if (!facts.oci) {
    return;
  }
  auto& manager = facts.oci->manager;
  bool rootless = facts.engine.rootless;
  bool v2 = facts.report.cgroup_mode == "v2";
  if (!facts.engine.limit_flags) {
    manager = facts.cgroup_bases.empty() ? cgroup_manager::none : cgroup_manager::joined;
  } else {
    manager =
        v2 && systemd_manages(context, rootless) ? cgroup_manager::systemd : cgroup_manager::files;
  }
}

task<expected<void>> make_oci_ready(driver_context& context, runtime_facts& facts) {
  if (!facts.oci) {
    co_return expected<void>{};
  }
  auto unpacked = co_await unpack_image(context, facts);
  if (!unpacked) {
    co_return tl::unexpected{unpacked.error()};
  }
  facts.oci->image = std::move(*unpacked);
  facts.oci->stamp = sandbox_stamp(context, facts);
  co_return expected<void>{};
}

} // namespace bulkhead
