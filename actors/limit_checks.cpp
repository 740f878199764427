#include "actors/limit_checks.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/gvisor.hpp"
#include "protocol/limits.hpp"

namespace bulkhead {

using nlohmann::json;

namespace {

/// Memory limits are rounded to pages; no page is larger than this here.
constexpr std::uint64_t page_slack = 64 * kibibyte;

std::optional<std::uint64_t> number_of(const json& found, const char* name) {
  if (!found.is_object() || !found.contains(name) || !found[name].is_string()) {
    return std::nullopt;
  }
  const auto& text = found[name].get_ref<const std::string&>();
  std::uint64_t value = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  return bad == std::errc{} && end == text.data() + text.size() ? std::optional{value}
                                                                : std::nullopt;
}

} // namespace

bool memory_limit_holds(const json& found, std::uint64_t asked) {
  auto memory = number_of(found, "memory");
  bool limited = memory && *memory > 0 && *memory <= asked + page_slack;
  // v2 counts swap apart, v1 together with memory; a kernel without swap accounting shows neither.
  auto swap = number_of(found, "swap");
  bool unlimited_swap = found.is_object() && found.value("swap", json{}) == "max";
  auto together = number_of(found, "memsw");
  return limited && !unlimited_swap && (!swap || *swap == 0) &&
         (!together || *together <= asked + page_slack);
}

bool pids_limit_holds(const json& found, std::uint32_t asked) {
  auto pids = number_of(found, "pids");
  return pids && *pids > 0 && *pids <= asked;
}

std::string limits_remedy(const runtime_facts& facts, const host_view& host) {
  if (facts.gvisor) {
    return facts.cgroup_bases.empty()
               ? "gVisor without root can't limit a sandbox: unset MCP_BRIDGE_OCI_RUNTIME to use "
                 "crun or runc"
               : fmt::format(
                     "gVisor without root can't limit a sandbox itself; a cgroup on the host holds "
                     "it and all its helpers to {} MiB and {} processes more than that: unset "
                     "MCP_BRIDGE_OCI_RUNTIME to use crun or runc, which hold the limit exactly",
                     (gvisor_memory + command_line_memory) / mebibyte,
                     gvisor_pids + command_line_pids);
  }
  if (facts.report.cgroup_mode == "v2") {
    return "let systemd delegate the controllers memory and pids to this account (systemctl edit "
           "user@.service, [Service] Delegate=cpu cpuset io memory pids) and log in again";
  }
  if (facts.engine.engine == container_engine::docker) {
    return "use docker with cgroup v2, or podman with a delegated cgroup (deploy/setup.sh)";
  }
  return fmt::format(
      "delegate cgroups to account {} once, as root: deploy/setup.sh; or boot with cgroup "
      "v2 (systemd.unified_cgroup_hierarchy=1)",
      host.account.empty() ? std::to_string(host.uid) : host.account);
}

} // namespace bulkhead
