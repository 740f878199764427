#include "actors/container_removal.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "actors/container_launch.hpp"
#include "actors/engine_errors.hpp"
#include "actors/oci_bundle.hpp"
#include "actors/oci_removal.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr int max_attempts = 4;
constexpr auto removal_budget = 10s;
/// How long a killed command line may take to be reaped.
constexpr auto reap_patience = 1s;

bool folder_exists(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::exists(folder + "/" + name, ignored);
}

/// Does the OCI runtime still have notes of this container? gVisor keeps files instead of a folder.
bool oci_runtime_knows(const runtime_facts& facts, const std::string& cid) {
  return folder_exists(facts.oci_root, cid) ||
         (facts.gvisor && folder_exists(facts.oci_root, fmt::format("{0}_sandbox:{0}.state", cid)));
}

/// The process that keeps the account's user namespace open for all of podman's commands: whichever
/// came first started it, in the cgroup it had.
bool is_pause_process(const host_view& host, pid_t pid) {
  auto line = read_small_file(fmt::format("{}/{}/cmdline", host.proc, pid)).value_or("");
  return line.starts_with(std::string{"catatonit\0-P", 12}) || line.starts_with("podman pause");
}

/// conmon processes of the container `name`; they are of this account.
std::vector<pid_t> monitors_of(const host_view& host, const std::string& name) {
  std::vector<pid_t> result;
  auto mark = std::string{"\0-n\0", 4} + name + '\0';
  std::error_code failure;
  using walk = std::filesystem::directory_iterator;
  for (walk entry{host.proc, failure}; !failure && entry != walk{}; entry.increment(failure)) {
    auto text = entry->path().filename().string();
    pid_t pid = 0;
    auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (bad != std::errc{} || end != text.data() + text.size()) {
      continue;
    }
    auto line = read_small_file(entry->path().string() + "/cmdline").value_or("");
    auto program = line.substr(0, line.find('\0'));
    if (program.ends_with("conmon") && line.find(mark) != std::string::npos) {
      result.push_back(pid);
    }
  }
  return result;
}

class removal {
public:
  removal(driver_context& context, const runtime_facts& facts, container_record record,
          bool thorough)
      : context_{context}, facts_{facts}, record_{std::move(record)}, thorough_{thorough} {}

  task<expected<void>> run() {
    bool ended = false;
    if (!thorough_) {
      ended = co_await ended_by_itself();
    }
    if (ended) {
      co_return expected<void>{};
    }
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
      if (attempt > 0) {
        co_await context_.pause(100ms * (1 << attempt));
      }
      bool gone = co_await try_once();
      if (gone) {
        co_return expected<void>{};
      }
    }
    co_return fail(
        errc::unavailable,
        fmt::format("remove container {}: {} after {} attempts; remove it with: {} rm -f {}",
                    record_.handle.name, remains_, max_attempts, facts_.engine.binary,
                    record_.handle.name));
  }

private:
  bool command_line_alive() const {
    return record_.handle.pid > 0 &&
           process_alive(context_.host, record_.handle.pid, record_.start_time);
  }

  /// podman has removed the container itself (--rm), as the folders show that it and the OCI
  /// runtime keep of each.
  bool engine_forgot_it() const {
    auto cid = read_container_id(record_.handle.folder);
    return !command_line_alive() && !cid.empty() && !facts_.storage.empty() &&
           !folder_exists(facts_.storage, cid) && !oci_runtime_knows(facts_, cid);
  }

  task<bool> ended_by_itself() {
    // conmon's own cleaning command may end a moment after the command line.
    for (auto wait : {5ms, 10ms, 20ms, 40ms, 80ms}) {
      if (!engine_forgot_it()) {
        co_return false;
      }
      if (remove_cgroups(*context_.host.cgroups, record_.handle.cgroups)) {
        co_return true;
      }
      co_await context_.pause(wait);
    }
    co_return false;
  }

  task<bool> try_once() {
    bool ended_before = !command_line_alive();
    if (!ended_before) {
      context_.services.signal(record_.handle.child, SIGTERM);
    }
    bool removed = co_await remove_by_engine();
    if (!ended_before) {
      context_.services.signal(record_.handle.child, SIGKILL);
      co_await wait_for_command_line();
    }
    auto cid = read_container_id(record_.handle.folder);
    co_await end_monitors();
    bool forgotten = co_await remove_by_oci_runtime(cid);
    bool cleared = co_await clear_cgroups(context_, facts_.engine, record_.handle.cgroups);
    if (!cleared) {
      remains_ = "its cgroup still has processes";
    }
    // A command line that was alive and still starting may have made the container, or the engine's
    // record of it, after that was looked for.
    bool certain = ended_before || record_.booted;
    if (removed && !certain) {
      remains_ = "its start was interrupted";
    }
    co_return removed&& certain&& forgotten&& cleared && !command_line_alive();
  }

  task<bool> remove_by_engine() {
    auto argv = remove_arguments(facts_.engine, record_.handle.name);
    auto result = co_await context_.run(std::move(argv), removal_budget);
    if (!result) {
      remains_ = result.error().message;
      co_return false;
    }
    bool unknown = result->err.find("No such container") != std::string::npos;
    if (result->exit_code != 0 && !unknown) {
      remains_ = engine_complaint(result->err);
      co_return false;
    }
    co_return true;
  }

  task<void> wait_for_command_line() {
    for (auto waited = 0ms; waited < reap_patience && command_line_alive(); waited += 10ms) {
      co_await context_.pause(10ms);
    }
  }

  task<void> end_monitors() {
    if (facts_.engine.engine == container_engine::podman) {
      co_await context_.kill_processes(facts_.engine,
                                       monitors_of(context_.host, record_.handle.name));
    }
  }

  /// What podman no longer lists when its command line was killed in the middle of a start.
  task<bool> remove_by_oci_runtime(std::string cid) {
    if (cid.empty() || !oci_runtime_knows(facts_, cid)) {
      co_return true;
    }
    std::vector<std::string> argv = {facts_.oci_binary, "--root",  facts_.oci_root,
                                     "delete",          "--force", cid};
    auto result = co_await context_.run(std::move(argv), removal_budget);
    bool gone = !oci_runtime_knows(facts_, cid);
    if (!gone) {
      remains_ = result ? engine_complaint(result->err) : result.error().message;
    }
    co_return gone;
  }

  driver_context& context_;
  const runtime_facts& facts_;
  container_record record_;
  bool thorough_;
  std::string remains_ = "it is still there";
};

} // namespace

task<expected<void>> remove_container(driver_context& context, const runtime_facts& facts,
                                      container_record record, bool thorough) {
  if (facts.oci) {
    auto removed = co_await remove_bundle(context, facts, std::move(record));
    co_return removed;
  }
  removal work{context, facts, std::move(record), thorough};
  auto result = co_await work.run();
  co_return result;
}

task<bool> ran_out_of_memory(driver_context& context, const runtime_facts& facts,
                             container_handle handle) {
  if (facts.oci) {
    co_return memory_kills_were_counted(handle.folder);
  }
  if (facts.gvisor) {
    // conmon watches a cgroup of the container's, which gVisor doesn't make.
    co_return memory_ran_out_in(*context.host.cgroups, handle.cgroups).value_or(false);
  }
  if (facts.engine.engine == container_engine::podman) {
    // podman's own OOMKilled is always false.
    co_return out_of_memory_was_seen(handle.folder);
  }
  std::vector<std::string> argv = {facts.engine.binary, "inspect", "--format",
                                   "{{.State.OOMKilled}}", handle.name};
  auto result = co_await context.run(std::move(argv), removal_budget);
  co_return result && result->exit_code == 0 && result->out.starts_with("true");
}

task<bool> clear_cgroups(driver_context& context, const engine_profile& engine,
                         std::vector<std::string> folders) {
  auto& files = *context.host.cgroups;
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (remove_cgroups(files, folders)) {
      co_return true;
    }
    auto pids = processes_in(files, folders);
    std::erase_if(pids, [&](pid_t pid) {
      bool keep = is_pause_process(context.host, pid);
      for (const auto& folder : folders) {
        if (keep) {
          move_to_base(files, folder, pid);
        }
      }
      return keep;
    });
    let_work(files, folders);
    co_await context.kill_processes(engine, std::move(pids));
    // A killed process leaves its cgroup a moment later.
    co_await context.pause(std::chrono::milliseconds{5 << attempt});
  }
  co_return remove_cgroups(files, folders);
}

} // namespace bulkhead
