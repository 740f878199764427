#include "protocol/oci_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "protocol/printable.hpp"

namespace bulkhead {

using nlohmann::json;

namespace {

/// The kernel's default period of a cpu quota, in microseconds (sched-bwc.rst).
constexpr std::uint64_t cpu_period = 100'000;

/// What containers must not see or change, as podman has it (containers/common and the runtime
/// specification's defaults), with what later versions of it added.
constexpr std::array masked_paths = {"/proc/acpi",
                                     "/proc/kcore",
                                     "/proc/keys",
                                     "/proc/interrupts",
                                     "/proc/latency_stats",
                                     "/proc/timer_list",
                                     "/proc/timer_stats",
                                     "/proc/sched_debug",
                                     "/proc/scsi",
                                     "/sys/firmware",
                                     "/sys/fs/selinux",
                                     "/sys/dev/block",
                                     "/sys/devices/virtual/powercap"};
constexpr std::array readonly_paths = {"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq",
                                       "/proc/sys", "/proc/sysrq-trigger",
                                       // crun makes a writable folder of it on cgroup v1.
                                       "/sys/fs/cgroup"};

json words(const auto& list) {
  auto result = json::array();
  for (const auto& each : list) {
    result.push_back(each);
  }
  return result;
}

json mount(std::string_view target, std::string_view type, std::string_view source,
           std::vector<std::string> options) {
  return {
      {"destination", target}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

json scratch(std::string_view target, std::uint64_t size) {
  return mount(target, "tmpfs", "tmpfs",
               {"rw", "noexec", "nosuid", "nodev", fmt::format("size={}", size), "mode=1777"});
}

json bind(const container_mount& what) {
  // A mount below the folder comes along, but none that is made on either side later.
  return mount(what.target, "bind", what.source,
               {what.read_only ? "ro" : "rw", "rbind", "rprivate", "nosuid", "nodev", "noexec"});
}

json rlimit(std::string_view name, std::uint64_t value) {
  return {{"type", name}, {"hard", value}, {"soft", value}};
}

class config_writer {
public:
  config_writer(const engine_profile& engine, const container_spec& spec, const oci_bundle& bundle)
      : engine_(engine), spec_(spec), bundle_(bundle) {}

  json write() const {
    return {{"ociVersion", "1.0.2"},
            {"process", process()},
            {"root", {{"path", bundle_.rootfs}, {"readonly", true}}},
            {"hostname", "sandbox"},
            {"mounts", mounts()},
            {"annotations", {{owner_label, spec_.instance}}},
            {"linux", linux()}};
  }

private:
  json process() const {
    std::vector<std::string> argv = {init_in_container, "--"};
    argv.insert(argv.end(), spec_.command.begin(), spec_.command.end());
    auto environment = words(sandbox_environment);
    environment.push_back("HOSTNAME=sandbox");
    return {{"user", {{"uid", spec_.uid}, {"gid", spec_.gid}, {"umask", 0022}}},
            {"args", argv},
            {"env", environment},
            {"cwd", "/workspace"},
            // No sets: none of any kind.
            {"capabilities", json::object()},
            {"rlimits",
             {rlimit("RLIMIT_NOFILE", engine_.nofile), rlimit("RLIMIT_NPROC", engine_.nproc),
              rlimit("RLIMIT_FSIZE", largest_file(spec_)), rlimit("RLIMIT_CORE", 0)}},
            {"noNewPrivileges", true},
            // When the host runs short, the sandbox goes first.
            {"oomScoreAdj", 1000}};
  }

  json mounts() const {
    auto result = json::array(
        {mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
         mount("/dev", "tmpfs", "tmpfs",
               {"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"}),
         mount("/dev/pts", "devpts", "devpts",
               {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
         mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
         scratch("/dev/shm", shm_size),
         mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}),
         mount("/sys/fs/cgroup", "cgroup", "cgroup",
               {"rprivate", "nosuid", "noexec", "nodev", "relatime", "ro"}),
         scratch("/tmp", spec_.tmp_size), scratch("/workspace", spec_.workspace_size),
         mount(init_in_container, "bind", bundle_.init,
               {"bind", "ro", "rprivate", "nosuid", "nodev"})});
    for (const auto& each : spec_.mounts) {
      result.push_back(bind(each));
    }
    return result;
  }

  json linux() const {
    auto namespaces = json::array();
    for (const auto* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) {
      namespaces.push_back({{"type", type}});
    }
    json result = {{"resources", resources()},
                   {"maskedPaths", masked_paths},
                   {"readonlyPaths", readonly_paths},
                   {"seccomp", bundle_.seccomp}};
    if (!bundle_.uids.empty()) {
      namespaces.push_back({{"type", "user"}});
      result["uidMappings"] = mappings(bundle_.uids);
      result["gidMappings"] = mappings(bundle_.gids);
    }
    result["namespaces"] = std::move(namespaces);
    if (!bundle_.cgroups_path.empty()) {
      result["cgroupsPath"] = bundle_.cgroups_path;
    }
    return result;
  }

  static json mappings(const std::vector<id_range>& ranges) {
    auto result = json::array();
    for (const auto& range : ranges) {
      result.push_back(
          {{"containerID", range.inside}, {"hostID", range.outside}, {"size", range.count}});
    }
    return result;
  }

  json resources() const {
    bool written =
        bundle_.manager == cgroup_manager::files || bundle_.manager == cgroup_manager::systemd;
    if (!written) {
      return json::object();
    }
    // "swap" is memory and swap together.
    json result = {{"memory", {{"limit", spec_.memory}, {"swap", spec_.memory}}},
                   {"pids", {{"limit", spec_.pids}}}};
    if (spec_.cpus) {
      result["cpu"] = {
          {"period", cpu_period},
          {"quota", static_cast<std::int64_t>(std::llround(*spec_.cpus * cpu_period))}};
    }
    return result;
  }

  const engine_profile& engine_;
  const container_spec& spec_;
  const oci_bundle& bundle_;
};

/// The names that Go, and so engines' profiles, have for a machine in conditions, and libseccomp's.
struct architecture {
  std::string_view machine;
  std::string_view condition;
  std::string_view filter;
};
constexpr std::array architectures = {
    architecture{"x86_64", "amd64", "SCMP_ARCH_X86_64"},
    architecture{"aarch64", "arm64", "SCMP_ARCH_AARCH64"},
    architecture{"ppc64le", "ppc64le", "SCMP_ARCH_PPC64LE"},
    architecture{"s390x", "s390x", "SCMP_ARCH_S390X"},
    architecture{"riscv64", "riscv64", "SCMP_ARCH_RISCV64"},
};

/// Thrown within this file only.
struct unusable_profile {
  std::string why;
};

class profile_reader {
public:
  profile_reader(const json& profile, const architecture& machine)
      : profile_(profile), machine_(machine) {}

  json read() const {
    for (const auto& [name, value] : profile_.items()) {
      if (name != "defaultAction" && name != "defaultErrnoRet" && name != "archMap" &&
          name != "syscalls") {
        throw unusable_profile{fmt::format("\"{}\" means nothing here", name)};
      }
    }
    json result = {{"defaultAction", profile_.at("defaultAction")},
                   {"architectures", filters()},
                   {"syscalls", json::array()}};
    if (profile_.contains("defaultErrnoRet")) {
      result["defaultErrnoRet"] = profile_["defaultErrnoRet"];
    }
    for (const auto& each : profile_.at("syscalls")) {
      if (applies(each)) {
        result["syscalls"].push_back(rule(each));
      }
    }
    return result;
  }

private:
  json filters() const {
    for (const auto& each : profile_.at("archMap")) {
      if (each.at("architecture") == machine_.filter) {
        json result = {machine_.filter};
        for (const auto& more : each.value("subArchitectures", json::array())) {
          result.push_back(more);
        }
        return result;
      }
    }
    throw unusable_profile{fmt::format("it has no rules for {}", machine_.machine)};
  }

  bool applies(const json& entry) const {
    if (!entry.contains("includes")) {
      return true;
    }
    const auto& condition = entry["includes"];
    if (condition.size() != 1 || !condition.contains("arches")) {
      throw unusable_profile{"a rule has another condition than the architecture"};
    }
    const auto& arches = condition["arches"];
    return std::find(arches.begin(), arches.end(), machine_.condition) != arches.end();
  }

  static json rule(const json& entry) {
    json result = {{"names", entry.at("names")}, {"action", entry.at("action")}};
    for (const auto& [name, value] : entry.items()) {
      if (name == "errnoRet") {
        result["errnoRet"] = value;
      } else if (name == "args") {
        result["args"] = value;
      } else if (name != "names" && name != "action" && name != "comment" && name != "includes") {
        throw unusable_profile{fmt::format("\"{}\" in a rule means nothing here", name)};
      }
    }
    return result;
  }

  const json& profile_;
  const architecture& machine_;
};

error malformed_profile(std::string_view why) {
  return {errc::malformed, fmt::format("read the seccomp profile: {}", why)};
}

/// crun and runc know different words for the same: only crun can do without a cgroup, runc takes
/// care of that itself in a user namespace.
std::vector<std::string> manager_options(const std::string& binary, cgroup_manager manager) {
  bool crun = binary.substr(binary.rfind('/') + 1).starts_with("crun");
  if (manager == cgroup_manager::systemd) {
    return {"--systemd-cgroup"};
  }
  return manager == cgroup_manager::none && crun
             ? std::vector<std::string>{"--cgroup-manager=disabled"}
             : std::vector<std::string>{};
}

/// The text of msg="…" in a line of runc's log, unquoted; the line itself when there is none.
std::string message_of(const std::string& line) {
  auto start = line.find("msg=\"");
  if (!line.starts_with("time=\"") || start == std::string::npos) {
    return line;
  }
  std::string result;
  for (auto at = start + 5; at < line.size() && line[at] != '"'; ++at) {
    at += line[at] == '\\' && at + 1 < line.size() ? 1 : 0;
    result += line[at];
  }
  return result;
}

} // namespace

std::string_view to_string(cgroup_manager manager) {
  switch (manager) {
  case cgroup_manager::joined:
    return "joined";
  case cgroup_manager::files:
    return "files";
  case cgroup_manager::systemd:
    return "systemd";
  case cgroup_manager::none:
    break;
  }
  return "none";
}

std::vector<id_range> ranges_without_account(std::string_view map) {
  std::istringstream lines{std::string{map}};
  std::vector<id_range> result;
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    // The account is 0 in its own namespace; a range that starts with it has it cut off.
    auto first = std::max<std::uint64_t>(inside, 1);
    if (inside + count > first) {
      result.push_back({static_cast<std::uint32_t>(first - 1), static_cast<std::uint32_t>(first),
                        static_cast<std::uint32_t>(inside + count - first)});
    }
  }
  return result;
}

json oci_config(const engine_profile& engine, const container_spec& spec,
                const oci_bundle& bundle) {
  return config_writer{engine, spec, bundle}.write();
}

expected<json> oci_seccomp(std::string_view profile, std::string_view machine) {
  auto known = std::find_if(architectures.begin(), architectures.end(),
                            [&](const auto& each) { return each.machine == machine; });
  if (known == architectures.end()) {
    return tl::unexpected{malformed_profile(fmt::format("it has no rules for {}", machine))};
  }
  auto text = json::parse(profile, nullptr, false);
  if (!text.is_object()) {
    return tl::unexpected{malformed_profile("it is no JSON object")};
  }
  try {
    return profile_reader{text, *known}.read();
  } catch (const unusable_profile& wrong) {
    return tl::unexpected{malformed_profile(wrong.why)};
  } catch (const json::exception& wrong) {
    return tl::unexpected{malformed_profile(wrong.what())};
  }
}

std::vector<std::string> oci_run_arguments(const std::string& binary, cgroup_manager manager,
                                           const std::string& root, const std::string& folder,
                                           const std::string& pid_file, const std::string& id) {
  std::vector<std::string> result = {binary, "--root", root};
  for (auto& option : manager_options(binary, manager)) {
    result.push_back(std::move(option));
  }
  result.insert(result.end(), {"run", "--detach", "--bundle", folder, "--pid-file", pid_file, id});
  return result;
}

std::vector<std::string> oci_delete_arguments(const std::string& binary, const std::string& root,
                                              const std::string& id) {
  return {binary, "--root", root, "delete", "--force", id};
}

std::string oci_complaint(std::string_view err) {
  constexpr std::size_t longest = 400;
  std::istringstream lines{std::string{err}};
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!line.empty() && line.find("level=warning") == std::string::npos) {
      result = message_of(line);
    }
  }
  return result.empty() ? "it gave no reason" : shortened(std::move(result), longest);
}

} // namespace bulkhead
