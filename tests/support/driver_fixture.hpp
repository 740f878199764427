#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/null_sink.h>

#include "actors/container_runtime.hpp"
#include "actors/errors.hpp"
#include "actors/volume_manager.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/fake_engine.hpp"

#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using namespace std::chrono_literals;

/// An answer, or why there is none.
template <class T>
struct answered {
  std::optional<T> value;
  error failure{errc::none, {}};
};

/// A driver on a host in a temporary folder: a v2 host with podman and both OCI runtimes, unless a
/// test says otherwise before `make_driver`.
struct driver_fixture : test_coordinator_fixture<actor_config> {
  driver_fixture() {
    auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-driver-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    engine.root = root;
    for (const auto* folder : {"bin", "cgroup", "proc", "xdg", "home", "run"}) {
      std::filesystem::create_directories(root + "/" + folder);
    }
    for (const auto* name : {"podman", "crun", "runc", "newuidmap"}) {
      install(name);
    }
    put("cgroup/cgroup.controllers", "cpu memory pids");
    put("proc/sys/kernel/random/boot_id", "boot-1\n");
    put("proc/self/cgroup", "4:memory:/\n3:pids:/\n2:cpu,cpuacct:/\n0::/\n");
    put("subuid", "someone:5000:10\ntester:100000:65536\n");
    host = {1000,          "tester", root + "/cgroup", root + "/proc", root + "/subuid",
            root + "/run", "",       cgroups};
    env.instance = "0123456789abcdef";
    env.runtime_dir = root + "/run/bulkhead";
    env.home = root + "/home";
    env.config->state_dir = root + "/home/MCPs";
    env.config->driver = "cli"; // the fake engine has no service
    env.variable = [this](std::string_view name) -> std::optional<std::string> {
      auto found = variables.find(std::string{name});
      return found == variables.end() ? std::nullopt : std::optional{found->second};
    };
    env.new_handle = [this] { return fmt::format("{:032x}", ++handles); };
    env.budget = std::make_shared<memory_budget>(env.bounds.memory_budget);
    env.log =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    variables = {{"PATH", root + "/bin"}, {"HOME", env.home}, {"XDG_RUNTIME_DIR", root + "/xdg"}};
    engine.serve(*script);
  }

  ~driver_fixture() {
    stop_driver();
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }

  void put(const std::string& path, const std::string& text) {
    auto file = std::filesystem::path{root} / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
  }

  void install(const std::string& name) {
    put("bin/" + name, "#!/bin/sh\n");
    std::filesystem::permissions(root + "/bin/" + name, std::filesystem::perms::all);
  }

  void uninstall(const std::string& name) { std::filesystem::remove(root + "/bin/" + name); }

  /// Makes it a hybrid v1 host; `delegated` names the controllers that the account may divide.
  void use_cgroup_v1(std::initializer_list<std::string> delegated) {
    std::filesystem::remove(root + "/cgroup/cgroup.controllers");
    std::filesystem::create_directories(root + "/cgroup/unified");
    for (const auto& controller : delegated) {
      cgroups->folders.insert(base_of(controller));
    }
  }

  std::string base_of(const std::string& controller) const {
    return root + "/cgroup/" + controller + "/tester";
  }

  void make_driver() {
    auto shared = std::make_shared<environment>(env);
    // The host in the account's place is this process, whatever its uid.
    processes = sys.spawn(scripted_commands, script);
    volumes = sys.spawn(volume_manager, environment_ptr{shared});
    runtime = sys.spawn(
        container_runtime_on, environment_ptr{shared}, processes, [this] { return volumes; }, host);
    consume();
  }

  void stop_driver() {
    for (const auto& actor :
         {caf::actor_cast<caf::actor>(runtime), caf::actor_cast<caf::actor>(volumes),
          caf::actor_cast<caf::actor>(processes)}) {
      if (actor) {
        anon_send_exit(actor, caf::exit_reason::kill);
      }
    }
    runtime = nullptr;
    volumes = nullptr;
    processes = nullptr;
    consume();
  }

  /// Sends a request to the driver; the answer may come later.
  template <class T, class... Ts>
  std::shared_ptr<answered<T>> ask(Ts... message) {
    auto result = std::make_shared<answered<T>>();
    sys.spawn([=, to = runtime](caf::event_based_actor* self) {
      self->request(to, 60min, message...)
          .then([result](T& value) { result->value = std::move(value); },
                [result](const caf::error& reason) { result->failure = from_caf(reason, "test"); });
    });
    consume();
    return result;
  }

  void consume() {
    while (sched.has_job()) {
      sched.run();
    }
  }

  /// Lets time go by, with all that happens in it, but no longer than need be.
  template <class Done>
  void pass_until(Done done, std::chrono::milliseconds most = 120s) {
    for (auto passed = 0ms; passed < most && !done(); passed += 5ms) {
      advance_time(5ms);
      consume();
    }
  }

  template <class T, class... Ts>
  answered<T> get(Ts... message) {
    auto result = ask<T>(std::move(message)...);
    pass_until([&] { return result->value || result->failure.code != errc::none; });
    return *result;
  }

  answered<runtime_report> ensure() { return get<runtime_report>(ensure_atom::value); }

  /// An owner of containers that only takes note.
  child_owner_actor owner() {
    return sys.spawn([](child_owner_actor::pointer) -> child_owner_actor::behavior_type {
      return {[](const child_output&) {}, [](const child_written&) {}, [](const child_exited&) {}};
    });
  }

  /// Starts a run's container, in a folder as a sandbox makes it.
  container_handle create() { return create(owner()); }

  container_handle create(const child_owner_actor& events) {
    auto id = env.new_handle();
    auto folder = env.runtime_dir + "/" + env.instance + "/runs/" + id;
    std::filesystem::create_directories(folder);
    auto made = get<container_handle>(create_atom::value, container_request{id, folder}, events);
    CAF_REQUIRE(made.value);
    return *made.value;
  }

  answered<caf::ok_atom> confine(const container_handle& handle) {
    return get<caf::ok_atom>(confine_atom::value, handle);
  }

  answered<caf::ok_atom> destroy(const container_handle& handle) {
    return get<caf::ok_atom>(destroy_atom::value, handle);
  }

  exit_verdict classify(const container_handle& handle, std::int32_t code,
                        std::string diagnosis = {}) {
    auto found = get<exit_verdict>(classify_atom::value, handle,
                                   child_exited{handle.child, code, 0}, std::move(diagnosis));
    CAF_REQUIRE(found.value);
    return *found.value;
  }

  std::string root;
  std::uint64_t handles = 0;
  std::map<std::string, std::string> variables;
  std::shared_ptr<fake_cgroups> cgroups = std::make_shared<fake_cgroups>();
  std::shared_ptr<command_script> script = std::make_shared<command_script>();
  fake_engine engine{cgroups};
  host_view host;
  environment env;
  process_host_actor processes;
  volume_manager_actor volumes;
  container_runtime_actor runtime;
};

inline bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace bulkhead::testing
