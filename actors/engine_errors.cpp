#include "actors/engine_errors.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/oci_config.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_complaint = 400;

struct remedy {
  std::string_view sign;   ///< what the engine says
  std::string_view advice; ///< {} stands for the account
};

constexpr std::array remedies = {
    remedy{"newuidmap", "install the package uidmap (Debian: apt install uidmap)"},
    remedy{"newgidmap", "install the package uidmap (Debian: apt install uidmap)"},
    remedy{"no subuid ranges",
           "give the account sub-uids, as root: usermod --add-subuids 100000-165535 --add-subgids "
           "100000-165535 {}; then: podman system migrate"},
    remedy{"cannot find UID/GID for user",
           "give the account sub-uids, as root: usermod --add-subuids 100000-165535 --add-subgids "
           "100000-165535 {}; then: podman system migrate"},
    remedy{"not enough IDs available", "give the account 65,536 sub-uids and sub-gids in "
                                       "/etc/subuid and /etc/subgid, then: podman "
                                       "system migrate"},
    remedy{
        "permission denied while trying to connect to the Docker daemon",
        "add {} to the group docker, set DOCKER_HOST to a rootless daemon's socket, or use podman"},
    remedy{
        "Got permission denied",
        "add {} to the group docker, set DOCKER_HOST to a rootless daemon's socket, or use podman"},
    remedy{
        "Cannot connect to the Docker daemon",
        "start it (systemctl --user start docker, or dockerd-rootless.sh), or set DOCKER_HOST or "
        "MCP_BRIDGE_RUNTIME"},
    remedy{"Cannot connect to Podman", "start the Podman machine: podman machine start"},
    remedy{"unable to connect to Podman", "start the Podman machine: podman machine start"},
    remedy{"cgroups in hybrid mode not supported", "install runc, which copes with such a host"},
    remedy{"XDG_RUNTIME_DIR",
           "log {} in by a real session or: loginctl enable-linger {}, and set XDG_RUNTIME_DIR"},
    remedy{"no space left on device", "free space where the engine keeps its containers"},
    remedy{"error setting rlimit",
           "raise the hard limits of this process (ulimit -Hn, ulimit -Hu) or don't run as root"},
    remedy{"cannot read client sync file",
           "gVisor's file server has to reach the mounted folders as the first sub-uid of {}: keep "
           "MCP_BRIDGE_STATE_DIR below folders of {} or ones that all may enter, or unset "
           "MCP_BRIDGE_OCI_RUNTIME to use crun or runc"},
    remedy{"could not get runtime",
           "install crun or runc, or set MCP_BRIDGE_OCI_RUNTIME to one that podman knows"},
    remedy{"not find runtime",
           "install crun or runc, or set MCP_BRIDGE_OCI_RUNTIME to one that podman knows"},
    remedy{"executable file `python3` not found",
           "use an image with python3: bulkhead image build"},
    remedy{"exec: \"python3\"", "use an image with python3: bulkhead image build"},
};

std::string advice_for(std::string_view err, const host_view& host) {
  if (is_missing_controller(err)) {
    return "let systemd delegate the controllers: systemctl edit user@.service, [Service] "
           "Delegate=cpu cpuset io memory pids, then log in again; or unset MCP_BRIDGE_CPUS if it "
           "is cpu";
  }
  auto found = std::find_if(remedies.begin(), remedies.end(), [&](const remedy& each) {
    return contains_ignoring_case(err, each.sign);
  });
  if (found == remedies.end()) {
    return "see: bulkhead doctor";
  }
  std::string advice{found->advice};
  auto account = host.account.empty() ? fmt::format("uid {}", host.uid) : host.account;
  for (auto at = advice.find("{}"); at != std::string::npos; at = advice.find("{}")) {
    advice.replace(at, 2, account);
  }
  return advice;
}

} // namespace

std::string engine_complaint(std::string_view err) {
  std::istringstream lines{std::string{err}};
  std::string last;
  std::string logged;
  std::string complaint;
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (line.empty() || line.starts_with("See '")) {
      continue;
    }
    if (line.starts_with("time=\"")) {
      constexpr std::string_view as_error = "level=error msg=";
      if (auto at = line.find(as_error); at != std::string::npos) {
        logged = line.substr(at + as_error.size());
      }
      continue;
    }
    last = line;
    if (line.starts_with("Error") || line.starts_with("docker: ")) {
      complaint = line;
    }
  }
  auto result = !complaint.empty() ? complaint : !last.empty() ? last : logged;
  for (std::string_view prefix : {"Error: ", "docker: ", "Error response from daemon: "}) {
    if (result.starts_with(prefix)) {
      result.erase(0, prefix.size());
    }
  }
  return result.empty() ? "it gave no reason" : shortened(std::move(result), longest_complaint);
}

bool says_processes_are_lost(std::string_view err) {
  return err.find("invalid internal status") != std::string_view::npos &&
         err.find("system migrate") != std::string_view::npos;
}

error explain_engine_failure(std::string_view action, const engine_profile& engine,
                             const host_view& host, std::int32_t exit_code, std::string_view err) {
  const auto* name = engine.engine == container_engine::podman ? "podman" : "docker";
  return {errc::unavailable, fmt::format("{}: {} exited with {}: {}; {}", action, name, exit_code,
                                         engine_complaint(err), advice_for(err, host))};
}

error explain_service_failure(std::string_view action, const host_view& host,
                              std::string_view complaint) {
  return {errc::unavailable, fmt::format("{}: podman's service: {}; {}", action, complaint,
                                         advice_for(complaint, host))};
}

error explain_oci_failure(std::string_view action, std::string_view name, const host_view& host,
                          std::int32_t exit_code, std::string_view err) {
  return {errc::unavailable, fmt::format("{}: {} exited with {}: {}; {}", action, name, exit_code,
                                         oci_complaint(err), advice_for(err, host))};
}

bool is_host_refusal(std::int32_t exit_code, std::string_view err) {
  // 126 also stands for a command that can't be executed, which every OCI runtime would say.
  return is_engine_exit_code(exit_code) &&
         (contains_ignoring_case(err, "OCI runtime error") ||
          contains_ignoring_case(err, "OCI runtime create failed") ||
          contains_ignoring_case(err, "cgroup") || contains_ignoring_case(err, "runtime") ||
          contains_ignoring_case(err, "crun:") || contains_ignoring_case(err, "runc:"));
}

bool is_missing_controller(std::string_view err) {
  return contains_ignoring_case(err, "controller") &&
         (contains_ignoring_case(err, "is not available") ||
          contains_ignoring_case(err, "not delegated") ||
          contains_ignoring_case(err, "no such controller"));
}

} // namespace bulkhead
