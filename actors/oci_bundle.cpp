#include "actors/oci_bundle.hpp"

#include <sys/utsname.h>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/oci_namespaces.hpp"
#include "protocol/oci_config.hpp"

namespace bulkhead {

using nlohmann::json;

namespace {

std::string machine() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

/// A name of the length that engines' ids have, by which cgroups of containers are told.
std::string container_id(const container_spec& spec) {
  auto id = spec.name.substr(spec.name.rfind('-') + 1);
  return id + id;
}

/// Where the container's cgroup is to be; empty: below the one that the OCI runtime is started in.
std::string cgroups_path(const runtime_facts& facts, const std::string& id) {
  if (facts.oci->manager != cgroup_manager::systemd) {
    return {};
  }
  // SLICE:PREFIX:NAME, which becomes the scope PREFIX-NAME.
  return fmt::format("{}:bulkhead:{}", facts.engine.rootless ? "user.slice" : "system.slice", id);
}

std::uint64_t number_of(const json& notes, const char* name) {
  return notes.contains(name) && notes[name].is_number_unsigned() ? notes[name].get<std::uint64_t>()
                                                                  : 0;
}

/// The number after `name` in lines of "name number"; nothing when there is none.
std::optional<std::uint64_t> counted(const std::string& file, std::string_view name) {
  std::istringstream lines{read_small_file(file).value_or("")};
  std::string word;
  for (std::uint64_t value = 0; lines >> word >> value;) {
    if (word == name) {
      return value;
    }
  }
  return std::nullopt;
}

/// The files that count the kernel's kills in the cgroup of a process, its own first, then (v2
/// only, where they count what is below them, too) those of the cgroups above.
std::vector<std::string> kill_counters(const host_view& host, std::int32_t pid) {
  std::istringstream lines{
      read_small_file(fmt::format("{}/{}/cgroup", host.proc, pid)).value_or("")};
  bool v2 = cgroup_version(host) == "v2";
  std::vector<std::string> result;
  for (std::string line; std::getline(lines, line);) {
    auto second = line.find(':', line.find(':') + 1);
    bool right = v2 ? line.starts_with("0::") : line.find(":memory:") != std::string::npos;
    if (!right || second == std::string::npos) {
      continue;
    }
    auto path = line.substr(second + 1);
    if (!v2) {
      return {host.cgroup_root + "/memory" + path + "/memory.oom_control"};
    }
    for (; path.size() > 1; path.resize(path.rfind('/'))) {
      result.push_back(host.cgroup_root + path + "/memory.events");
    }
  }
  return result;
}

std::string kills_file(const std::string& folder) {
  return folder + "/kills";
}

} // namespace

std::string pid_file(const std::string& folder) {
  return folder + "/pid";
}

std::string runtime_root(const std::string& folder) {
  return folder + "/oci";
}

expected<std::vector<std::string>> write_bundle(const driver_context& context,
                                                const runtime_facts& facts,
                                                const container_spec& spec,
                                                const std::string& folder) {
  const auto& oci = *facts.oci;
  auto profile = read_small_file(spec.seccomp_profile);
  if (!profile) {
    return fail(errc::unavailable,
                fmt::format("read the seccomp profile \"{}\": it can't be read; start Bulkhead "
                            "again",
                            spec.seccomp_profile));
  }
  auto seccomp = oci_seccomp(*profile, machine());
  if (!seccomp) {
    return tl::unexpected{seccomp.error()};
  }
  auto id = container_id(spec);
  oci_bundle bundle{
      oci.place + "/" + oci.image, oci.init,           oci.uids, oci.gids, oci.manager,
      cgroups_path(facts, id),     std::move(*seccomp)};
  auto config = oci_config(facts.engine, spec, bundle);
  for (const auto& [name, text] :
       {std::pair{"/config.json", config.dump()}, std::pair{"/cid", id}}) {
    if (auto written = write_small_file(folder + name, text, 0600); !written) {
      return tl::unexpected{written.error()};
    }
  }
  auto argv = oci_run_arguments(facts.oci_binary, oci.manager, runtime_root(folder), folder,
                                pid_file(folder), id);
  return within_namespaces(context, facts, std::move(argv));
}

std::vector<oci_container> noted_containers(const std::string& folder) {
  std::vector<oci_container> result;
  std::error_code failure;
  using walk = std::filesystem::directory_iterator;
  for (walk entry{runtime_root(folder), failure}; !failure && entry != walk{};
       entry.increment(failure)) {
    oci_container found;
    found.id = entry->path().filename().string();
    // runc's and crun's files and the names in them (libcontainer's state.json, crun's status).
    auto runc = read_small_file(entry->path().string() + "/state.json");
    auto crun = read_small_file(entry->path().string() + "/status");
    auto notes = json::parse(runc.value_or(crun.value_or("")), nullptr, false);
    if (notes.is_object()) {
      found.runtime = runc ? "runc" : "crun";
      found.pid = static_cast<std::int32_t>(number_of(notes, runc ? "init_process_pid" : "pid"));
      found.start_time = number_of(notes, runc ? "init_process_start" : "process-start-time");
    }
    result.push_back(std::move(found));
  }
  return result;
}

void note_memory_kills(const driver_context& context, const std::string& folder) {
  std::int32_t pid = 0;
  std::istringstream{read_small_file(pid_file(folder)).value_or("")} >> pid;
  if (pid == 0) {
    // The file is written when the program runs, which may be ready sooner; the notes come before.
    for (const auto& container : noted_containers(folder)) {
      pid = container.pid;
    }
  }
  std::string text;
  for (const auto& counter : kill_counters(context.host, pid)) {
    text += fmt::format("{} {}\n", counted(counter, "oom_kill").value_or(0), counter);
  }
  auto written = write_small_file(kills_file(folder), text, 0600);
  if (!written || text.empty()) {
    context.env->log->warn("a sandbox that runs out of memory won't be told as such: {}",
                           written ? "its cgroup is unknown" : written.error().message);
  }
}

bool memory_kills_were_counted(const std::string& folder) {
  std::istringstream lines{read_small_file(kills_file(folder)).value_or("")};
  std::uint64_t before = 0;
  for (std::string counter; lines >> before && std::getline(lines >> std::ws, counter);) {
    if (auto now = counted(counter, "oom_kill")) {
      return *now > before;
    }
  }
  return false;
}

} // namespace bulkhead
