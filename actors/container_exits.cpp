#include <csignal>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/container_drive.hpp"
#include "actors/container_launch.hpp"
#include "actors/container_runtime.hpp"
#include "actors/engine_errors.hpp"
#include "actors/oci_namespaces.hpp"
#include "actors/rest_service.hpp"

/// Why a container's program ended.

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// GUEST_FAILURE of the guest's entrypoint.py; the reason is on the container's stderr.
constexpr std::int32_t guest_failure_exit_code = 70;
constexpr std::int32_t killed_exit_code = 137;

} // namespace

task<expected<exit_verdict>> container_runtime_state::classify(container_handle handle,
                                                               child_exited exit,
                                                               std::string diagnosis) {
  auto record = containers.find(handle.id);
  bool booted = record != containers.end() && record->second.booted;
  // The exit code is the program's but where an engine's command stands between.
  bool by_rest = record != containers.end() && record->second.service != 0;
  bool without_engine = last_facts && last_facts->oci;
  bool engine_code = !by_rest && !without_engine && is_engine_exit_code(exit.exit_code);
  // Whose service was lost, of that nobody can tell more, nor need the next service be asked.
  bool service_lost =
      by_rest && exit.signal != 0 && !context.rest->is_current(record->second.service);
  if (exit.exit_code == killed_exit_code && last_facts && !service_lost) {
    bool exhausted = co_await killed_for_memory(context, *last_facts, handle);
    if (exhausted) {
      co_return exit_verdict{
          {errc::out_of_memory,
           fmt::format("the code used more than the sandbox's {} MiB of memory; use "
                       "less, or raise MCP_BRIDGE_MEMORY",
                       context.env->config->memory / mebibyte)},
          exit.exit_code};
    }
  }
  if (!booted && (exit.signal != 0 || exit.exit_code == killed_exit_code)) {
    // Says nothing of the engine, so that what was found out about it still holds.
    co_return exit_verdict{
        {errc::unavailable,
         fmt::format(
             "the container engine's {} was killed (signal {}) before any code ran; the run "
             "can be sent again",
             by_rest ? "service or the sandbox" : "command",
             exit.signal != 0 ? exit.signal : SIGKILL)},
        exit.exit_code};
  }
  if (!booted && by_rest) {
    engine_failed();
    co_return exit_verdict{
        {errc::unavailable,
         fmt::format("start a sandbox: its Python ended with {} before it was ready: {}; see: "
                     "bulkhead doctor",
                     exit.exit_code, engine_complaint(diagnosis))},
        exit.exit_code};
  }
  if (!booted && without_engine && missed_the_holder(context, diagnosis)) {
    // As if it had never been started: another sandbox takes the run.
    co_return exit_verdict{{errc::closed,
                            "the process that keeps the account's namespaces open was ended "
                            "before any code ran, again and again; the run can be sent again"},
                           exit.exit_code};
  }
  if (!booted) {
    engine_failed();
    co_return exit_verdict{explain_start_failure(context,
                                                 last_facts ? *last_facts : runtime_facts{},
                                                 exit.exit_code, diagnosis),
                           exit.exit_code};
  }
  if (exit.signal != 0 || exit.exit_code == killed_exit_code) {
    co_return exit_verdict{
        {errc::runtime_lost,
         exit.signal != 0 && by_rest
             ? std::string{"the container engine's service was lost, and the sandbox with it"}
         : exit.signal != 0 && !without_engine
             ? fmt::format("the container engine's process was ended by signal {}", exit.signal)
             : std::string{"the sandbox was killed from outside, or its code killed itself "
                           "(SIGKILL)"}},
        exit.exit_code};
  }
  if (engine_code && diagnosis.find("Error") != std::string::npos) {
    co_return exit_verdict{
        {errc::runtime_lost, fmt::format("the container engine lost the sandbox (exit code {}): {}",
                                         exit.exit_code, engine_complaint(diagnosis))},
        exit.exit_code};
  }
  if (engine_code && co_await still_runs(handle)) {
    co_return exit_verdict{
        {errc::runtime_lost, fmt::format("the container engine gave the sandbox up while it ran "
                                         "(exit code {})",
                                         exit.exit_code)},
        exit.exit_code};
  }
  if (exit.exit_code == guest_failure_exit_code && !diagnosis.empty()) {
    co_return exit_verdict{{errc::runtime_lost, fmt::format("the sandbox's own Python gave up: {}",
                                                            engine_complaint(diagnosis))},
                           exit.exit_code};
  }
  co_return exit_verdict{{errc::none, {}}, exit.exit_code};
}

/// Does the engine believe that the container runs, though its command has ended? A program's own
/// exit code 127 is told by that from the engine's.
task<bool> container_runtime_state::still_runs(container_handle handle) {
  if (!last_facts) {
    co_return false;
  }
  std::vector<std::string> argv = {last_facts->engine.binary, "inspect", "--format",
                                   "{{.State.Status}}", handle.name};
  auto result = co_await context.run(std::move(argv), 20s);
  co_return result && result->exit_code == 0 && result->out.starts_with("running");
}

} // namespace bulkhead
