#include "actors/driver_context.hpp"

#include <array>
#include <filesystem>

#include <unistd.h>

#include "actors/engine_errors.hpp"

namespace bulkhead {

namespace {

/// Where engines keep their state and configuration, and how docker finds its daemon. No proxies,
/// no NOTIFY_SOCKET: podman would hand them on.
constexpr std::array passed_on = {"HOME",
                                  "USER",
                                  "LOGNAME",
                                  "TMPDIR",
                                  "XDG_RUNTIME_DIR",
                                  "XDG_CONFIG_HOME",
                                  "XDG_DATA_HOME",
                                  "DBUS_SESSION_BUS_ADDRESS",
                                  "CONTAINERS_CONF",
                                  "CONTAINERS_STORAGE_CONF",
                                  "DOCKER_HOST",
                                  "DOCKER_CONTEXT",
                                  "DOCKER_CONFIG",
                                  "DOCKER_CERT_PATH",
                                  "DOCKER_TLS_VERIFY"};

std::string engine_path(const environment& env, const host_view& host) {
  auto own = env.variable("PATH").value_or("");
  return own.empty() ? host.system_path : own + ":" + host.system_path;
}

constexpr auto migration_budget = std::chrono::seconds{30};

} // namespace

task<expected<finished_process>> driver_context::run(std::vector<std::string> argv,
                                                     std::chrono::milliseconds budget) {
  const std::string program = argv.empty() ? std::string{} : argv.front();
  auto result = co_await run_once(argv, budget);
  bool podman = std::filesystem::path{program}.filename().string().starts_with("podman");
  if (podman && result && result->exit_code != 0 && says_processes_are_lost(result->err)) {
    env->log->warn("podman has lost its processes, and nothing of it works until: podman system "
                   "migrate; doing that");
    std::vector<std::string> migrate = {program, "system", "migrate"};
    co_await run_once(std::move(migrate), migration_budget);
    result = co_await run_once(std::move(argv), budget);
  }
  co_return result;
}

task<expected<finished_process>> driver_context::run_once(std::vector<std::string> argv,
                                                          std::chrono::milliseconds budget) {
  process_spec spec;
  spec.argv = std::move(argv);
  spec.env = engine_environment();
  // A folder that the account can surely enter.
  spec.cwd = folders.root.empty() ? "/" : folders.root;
  // The first command of podman leaves a process that keeps its user namespace open.
  spec.kill_group_at_exit = false;
  completion<expected<finished_process>> answer{[this, &spec, budget](auto done) {
    services.run(std::move(spec), {}, budget, std::move(done));
  }};
  co_return co_await answer;
}

task<void> driver_context::pause(std::chrono::milliseconds time) {
  completion<bool> passed{[this, time](auto done) { services.after(time, std::move(done)); }};
  co_await passed;
}

std::vector<std::string> driver_context::engine_environment() const {
  std::vector<std::string> result = {"PATH=" + engine_path(*env, host), "LANG=C.UTF-8"};
  for (const char* name : passed_on) {
    if (auto value = env->variable(name)) {
      result.push_back(std::string{name} + "=" + *value);
    }
  }
  if (!env->variable("HOME") && !env->home.empty()) {
    result.push_back("HOME=" + env->home);
  }
  return result;
}

std::string driver_context::find_program(const std::string& name) const {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? name : std::string{};
  }
  auto path = engine_path(*env, host) + ":";
  for (std::size_t from = 0, to = 0; (to = path.find(':', from)) != std::string::npos;
       from = to + 1) {
    auto file = path.substr(from, to - from) + "/" + name;
    if (to > from && ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

task<void> driver_context::kill_processes(const engine_profile& engine, std::vector<pid_t> pids) {
  if (pids.empty()) {
    co_return;
  }
  std::vector<std::string> argv;
  if (engine.engine == container_engine::podman && engine.rootless) {
    argv = {engine.binary, "unshare"};
  }
  argv.insert(argv.end(), {"sh", "-c", "kill -9 \"$@\"", "sh"});
  for (auto pid : pids) {
    argv.push_back(std::to_string(pid));
  }
  auto result = co_await run(std::move(argv), std::chrono::seconds{10});
  if (!result) {
    env->log->warn("end what a sandbox left: {}", result.error().message);
  }
}

} // namespace bulkhead
