#include "tests/support/fake_oci.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace bulkhead::testing {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path{path}.parent_path());
  std::ofstream{path} << text;
}

std::string get(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

bool has(const std::vector<std::string>& argv, std::string_view word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

} // namespace

void fake_oci::serve(command_script& script) {
  script.command = [this, other = script.command](const process_spec& spec) {
    auto own = command(spec);
    return own ? expected<finished_process>{std::move(*own)} : other(spec);
  };
  script.started = [this, other = script.started](const scripted_child& child) {
    if (!start(child)) {
      other(child);
    }
  };
  script.written = [this, &script, other = script.written](const scripted_child& child,
                                                           const std::string& text) {
    containers.contains(child.id()) ? answer(script, child, text) : other(child, text);
  };
  script.signalled = [this, &script, other = script.signalled](const scripted_child& child,
                                                               std::int32_t signal) {
    if (!containers.contains(child.id())) {
      other(child, signal);
    } else if (signal == SIGKILL && starts_hang) {
      // The runtime dies, not what it has made.
      fs::remove_all(process_folder(1000 + static_cast<pid_t>(child.id())));
      child.exit(137, SIGKILL);
    } else if (signal == SIGKILL) {
      end(script, child.id(), 137, SIGKILL);
    }
  };
}

std::optional<finished_process> fake_oci::command(const process_spec& spec) {
  const auto& argv = spec.argv;
  if (argv[0] == "sh") {
    // sh -c SCRIPT sh PODMAN IMAGE NAME LABEL FOLDER SCRIPT …
    fs::create_directories(argv[8] + "/usr");
    ++unpacked;
    return unpack_failure.empty() ? finished_process{}
                                  : finished_process{2, {}, unpack_failure + "\n"};
  }
  if (has(argv, "unshare") && has(argv, "rm")) {
    fs::remove_all(argv.back());
    return finished_process{};
  }
  if (has(argv, "unshare") && argv[2] == "sh" && argv[4].find("flock") != std::string::npos) {
    if (!hold_failure.empty()) {
      return finished_process{1, {}, hold_failure + "\n"};
    }
    holder = 7000 + ++holders;
    make_process(holder);
    return finished_process{0, std::to_string(holder) + "\n", {}};
  }
  if (has(argv, "delete")) {
    for (auto& [child, each] : containers) {
      if (each.id == argv.back()) {
        each.running = false;
        fs::remove_all(process_folder(each.pid));
      }
    }
  }
  return std::nullopt;
}

bool fake_oci::start(const scripted_child& child) {
  const auto& argv = child.spec().argv;
  if (!has(argv, "--pid-file")) {
    return false;
  }
  auto root = std::find(argv.begin(), argv.end(), "--root");
  auto runtime = fs::path{*(root - 1)}.filename().string();
  if (auto found = refusing.find(runtime); found != refusing.end()) {
    child.err(found->second + "\n");
    child.exit(1);
    return true;
  }
  container made{value_of(argv, "--bundle"), argv.back(), 5000 + static_cast<pid_t>(child.id()),
                 true};
  make_process(made.pid);
  bool runc = runtime == "runc";
  put(value_of(argv, "--root") + "/" + made.id + (runc ? "/state.json" : "/status"),
      json{{runc ? "init_process_pid" : "pid", made.pid},
           {runc ? "init_process_start" : "process-start-time", 888}}
          .dump());
  for (const auto& folder : child.spec().cgroups) {
    auto inner = without_inner_cgroup ? folder : folder + "/" + made.id;
    cgroups_->folders.insert(inner);
    cgroups_->processes[inner].insert(made.pid);
  }
  put(process_folder(made.pid) + "/cgroup", (v2() ? "0::" : "4:memory:") + cgroup_of(made) + "\n");
  containers[child.id()] = made;
  if (starts_hang) {
    make_process(1000 + static_cast<pid_t>(child.id()));
    return true;
  }
  put(child.spec().successor_file, std::to_string(made.pid));
  if (config_of(made)["process"]["args"].back() == "/ipc/bulkhead_probe.py") {
    child.line(R"({"ready": "3.13.5"})");
  }
  return true;
}

void fake_oci::answer(command_script& script, const scripted_child& child,
                      const std::string& line) {
  const auto& of = containers.at(child.id());
  if (line == "limits\n") {
    auto resources = config_of(of)["linux"]["resources"];
    bool set = !resources.empty();
    json asked = {{"memory", set ? resources["memory"]["limit"].dump() : "max"},
                  {"swap", set ? "0" : "max"},
                  {"pids", set ? resources["pids"]["limit"].dump() : "max"}};
    child.line((engine_.limits.is_null() ? asked : engine_.limits).dump());
  } else if (line == "facts\n") {
    child.line(engine_.facts.dump());
  } else if (line.starts_with("pids")) {
    child.line(json{{"started", engine_.threads}, {"asked", 128}}.dump());
  } else if (line.starts_with("memory")) {
    count_kills(cgroup_of(of), 1);
    end(script, child.id(), 137);
  }
}

void fake_oci::end(command_script& script, child_id child, std::int32_t code, std::int32_t signal) {
  auto& of = containers.at(child);
  of.running = false;
  fs::remove_all(process_folder(of.pid));
  for (auto& [folder, pids] : cgroups_->processes) {
    pids.erase(of.pid);
  }
  script.children[child - 1].exit(code, signal);
}

void fake_oci::kill_holder() {
  fs::remove_all(process_folder(holder));
}

void fake_oci::count_kills(const std::string& cgroup, int times) {
  auto file = v2() ? engine_.root + "/cgroup" + cgroup + "/memory.events"
                   : engine_.root + "/cgroup/memory" + cgroup + "/memory.oom_control";
  put(file, fmt::format("low 0\noom_kill {}\n", times));
}

json fake_oci::config_of(const container& of) {
  return json::parse(get(of.folder + "/config.json"));
}

std::string fake_oci::cgroup_of(const container& of) const {
  return "/user.slice/a.service/" + of.id;
}

std::string fake_oci::process_folder(pid_t pid) const {
  return fmt::format("{}/proc/{}", engine_.root, pid);
}

void fake_oci::make_process(pid_t pid) const {
  put(process_folder(pid) + "/stat",
      fmt::format("{} (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 888 20\n", pid));
}

bool fake_oci::v2() const {
  return fs::exists(engine_.root + "/cgroup/cgroup.controllers");
}

} // namespace bulkhead::testing
