#include "tests/support/fake_engine.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "protocol/container_spec.hpp"

namespace bulkhead::testing {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path{path}.parent_path());
  std::ofstream{path} << text;
}

bool has(const std::vector<std::string>& argv, std::string_view word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

} // namespace

std::string value_of(const std::vector<std::string>& argv, std::string_view flag) {
  auto found = std::find(argv.begin(), argv.end(), flag);
  return found == argv.end() || found + 1 == argv.end() ? std::string{} : *(found + 1);
}

void fake_engine::serve(command_script& script) {
  script.command = [this, &script](const process_spec& spec) { return command(script, spec); };
  script.started = [this](const scripted_child& child) { start(child); };
  script.written = [this, &script](const scripted_child& child, const std::string& text) {
    answer(script, child, text);
  };
  script.signalled = [this](const scripted_child& child, std::int32_t signal) {
    if (signal == SIGKILL) {
      fs::remove_all(fmt::format("{}/proc/{}", root, 1000 + child.id()));
      child.exit(0, signal);
      // The command line's process leaves the cgroups.
      for (auto& [folder, pids] : cgroups_->processes) {
        pids.erase(static_cast<pid_t>(1000 + child.id()));
      }
    }
  };
}

expected<finished_process> fake_engine::command(command_script& script, const process_spec& spec) {
  auto program = fs::path{spec.argv[0]}.filename().string();
  std::vector<std::string> words{spec.argv.begin() + 1, spec.argv.end()};
  auto line = fmt::format("{}", fmt::join(words, " "));
  if (program == "podman" && processes_lost) {
    if (line == "system migrate") {
      processes_lost = false;
      return finished_process{};
    }
    return finished_process{
        1,
        {},
        "time=\"x\" level=error msg=\"invalid internal status, try resetting the pause "
        "process with \\\"podman system migrate\\\": could not find any running process: "
        "no such process\"\n"};
  }
  for (const auto& [start, how] : failing) {
    if (line.starts_with(start)) {
      return finished_process{how.code, {}, how.err};
    }
  }
  if (program == "crun" || program == "runc" || program == "runsc") {
    if (has(words, "--version")) {
      return finished_process{0, program + " version 1.2.3\nmore\n", {}};
    }
    if (has(words, "list")) {
      return finished_process{0, oci_list, {}};
    }
    if (has(words, "delete")) {
      fs::remove_all(words[1] + "/" + words.back());
      return finished_process{};
    }
  }
  if (hanging_removals && words[0] == "rm") {
    return fail(errc::timeout, "run podman: killed at its deadline");
  }
  return podman_command(script, words);
}

finished_process fake_engine::podman_command(command_script& script,
                                             const std::vector<std::string>& words) {
  const auto& verb = words[0];
  if (verb == "version") {
    return {0, version + "\n", {}};
  }
  if (verb == "info") {
    return {0, docker_info + "\n", {}};
  }
  if (verb == "image") {
    auto line = fmt::format("{}|{}|{}/store/overlay/{}/diff\n", image_id, driver, root,
                            std::string(64, 'f'));
    return image ? finished_process{0, line, {}}
                 : finished_process{125, {}, "Error: inspecting object: x: image not known\n"};
  }
  if (verb == "unshare" && words[1] == "cat") {
    return {0, uid_map, {}};
  }
  if (verb == "unshare") {
    // sh -c … sh PIDS
    for (auto word = words.begin() + 5; word != words.end(); ++word) {
      for (auto& [folder, pids] : cgroups_->processes) {
        pids.erase(std::stoi(*word));
      }
    }
    return {};
  }
  if (verb == "ps") {
    std::string list;
    for (const auto& [name, container] : containers) {
      list += fmt::format("{} {}\n", name, container.instance);
    }
    return {0, list, {}};
  }
  if (verb == "inspect" && has(words, "container")) {
    return {0, containers.at(words.back()).source + "\n", {}};
  }
  if (verb == "inspect" && value_of(words, "--format").find("OOMKilled") != std::string::npos) {
    return {0, oom_killed ? "true\n" : "false\n", {}};
  }
  if (verb == "inspect" && value_of(words, "--format") == "{{.State.Status}}") {
    auto found = containers.find(words.back());
    return found == containers.end()
               ? finished_process{125, {}, "Error: no such object\n"}
               : finished_process{0, found->second.running ? "running\n" : "exited\n", {}};
  }
  if (verb == "inspect") {
    return {0, "4242\n", {}};
  }
  if (verb != "rm") {
    return {125, {}, "Error: what?"};
  }
  finished_process all;
  for (auto word = std::find(words.begin(), words.end(), "--ignore"); word != words.end(); ++word) {
    auto one = remove(script, *word);
    all = {std::max(all.exit_code, one.exit_code), all.out + one.out, all.err + one.err};
  }
  return has(words, "--ignore") ? all : remove(script, words.back());
}

finished_process fake_engine::remove(command_script& script, const std::string& name) {
  auto found = containers.find(name);
  if (found == containers.end()) {
    return {};
  }
  if (failing_removals > 0) {
    --failing_removals;
    return {2, {}, "Error: container is busy\n"};
  }
  auto container = found->second;
  containers.erase(found);
  forget(container);
  if (container.child != 0) {
    fs::remove_all(fmt::format("{}/proc/{}", root, 1000 + container.child));
    script.children[container.child - 1].exit(137);
  }
  return {0, name + "\n", {}};
}

void fake_engine::forget(const fake_container& container) {
  fs::remove_all(storage() + "/" + container.cid);
  for (const auto* runtime : {"crun", "runc"}) {
    fs::remove_all(oci_root(runtime) + "/" + container.cid);
  }
  std::vector<std::string> inner;
  for (const auto& folder : cgroups_->folders) {
    if (folder.ends_with(container.cid)) {
      inner.push_back(folder);
    }
  }
  for (const auto& folder : inner) {
    cgroups_->folders.erase(folder);
    cgroups_->processes.erase(folder);
  }
  for (auto& [folder, pids] : cgroups_->processes) {
    pids.erase(static_cast<pid_t>(1000 + container.child));
  }
}

void fake_engine::start(const scripted_child& child) {
  const auto& spec = child.spec();
  auto runtime = value_of(spec.argv, "--runtime");
  if (auto found = refusing.find(runtime); found != refusing.end()) {
    child.err(found->second.err);
    child.exit(found->second.code);
    return;
  }
  if (refuse_limits && has(spec.argv, "--memory")) {
    child.err("Error: OCI runtime error: crun: the requested cgroup controller `pids` is not "
              "available\n");
    child.exit(126);
    return;
  }
  auto label = value_of(spec.argv, "--label");
  fake_container container{value_of(spec.argv, "--name"),
                           label.substr(label.find('=') + 1),
                           fmt::format("{:064x}", 0xabc000 + child.id()),
                           {},
                           child.id(),
                           true};
  put(value_of(spec.argv, "--cidfile"), container.cid);
  fs::create_directories(storage() + "/" + container.cid);
  fs::create_directories(oci_root(runtime) + "/" + container.cid);
  put(fmt::format("{}/proc/{}/stat", root, 1000 + child.id()),
      fmt::format("{} (podman) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20\n",
                  1000 + child.id()));
  for (const auto& folder : spec.cgroups) {
    cgroups_->folders.insert(folder + "/" + container.cid);
    cgroups_->processes[folder].insert(static_cast<pid_t>(1000 + child.id()));
    cgroups_->processes[folder + "/" + container.cid].insert(4242);
  }
  containers[container.name] = container;
  if (started) {
    started(container.cid);
  }
  if (has(spec.argv, "/ipc/bulkhead_probe.py")) {
    child.line(R"({"ready": "3.13.5"})");
  }
}

void fake_engine::answer(command_script& script, const scripted_child& child, std::string line) {
  const auto& argv = child.spec().argv;
  if (line == "limits\n") {
    auto memory = value_of(argv, "--memory");
    auto asked = json{{"memory", memory.empty() ? "max" : memory.substr(0, memory.size() - 1)},
                      {"swap", memory.empty() ? "max" : "0"},
                      {"pids", memory.empty() ? "max" : value_of(argv, "--pids-limit")}};
    child.line((limits.is_null() ? asked : limits).dump());
  } else if (line == "facts\n") {
    child.line(facts.dump());
  } else if (line.starts_with("pids")) {
    child.line(json{{"started", threads}, {"asked", 128}}.dump());
  } else if (line.starts_with("memory") && survives_memory) {
    child.line(R"({"survived": 1})");
  } else if (line.starts_with("memory")) {
    put(child.spec().cwd + "/oom", "");
    end(script, name_of(child.id()), 137);
  }
}

std::string fake_engine::name_of(child_id child) const {
  for (const auto& [name, container] : containers) {
    if (container.child == child) {
      return name;
    }
  }
  return {};
}

void fake_engine::end(command_script& script, const std::string& name, std::int32_t code,
                      bool removed) {
  auto container = containers.at(name);
  fs::remove_all(fmt::format("{}/proc/{}", root, 1000 + container.child));
  script.children[container.child - 1].exit(code);
  for (auto& [folder, pids] : cgroups_->processes) {
    pids.erase(static_cast<pid_t>(1000 + container.child));
  }
  if (removed) {
    forget(container);
    containers.erase(name);
  } else {
    containers[name].running = false;
  }
}

} // namespace bulkhead::testing
