#include "actors/oci_removal.hpp"

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "actors/container_launch.hpp"
#include "actors/oci_bundle.hpp"
#include "protocol/oci_config.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr int max_attempts = 4;
constexpr auto removal_budget = 15s;
/// How long a killed process may take to be gone.
constexpr auto death_patience = 2s;

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

class removal {
public:
  removal(driver_context& context, const runtime_facts& facts, container_record record)
      : context_{context}, facts_{facts}, record_{std::move(record)} {}

  task<expected<void>> run() {
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
      if (attempt > 0) {
        co_await context_.pause(100ms * (1 << attempt));
      }
      bool gone = co_await try_once();
      if (gone) {
        co_return expected<void>{};
      }
    }
    co_return fail(errc::unavailable,
                   fmt::format("remove container {}: {} after {} attempts; it can be removed with: "
                               "bulkhead doctor --sweep, once this process has ended",
                               record_.handle.name, remains_, max_attempts));
  }

private:
  const std::string& folder() const { return record_.handle.folder; }

  bool starting() const {
    return record_.handle.pid > 0 &&
           process_alive(context_.host, record_.handle.pid, record_.start_time);
  }

  bool running() const {
    for (const auto& each : noted_containers(folder())) {
      if (each.pid > 0 && process_alive(context_.host, each.pid, each.start_time)) {
        return true;
      }
    }
    return false;
  }

  task<bool> try_once() {
    // Started in full, it has one process that all others end with. A start that was cut short may
    // have left more than that.
    bool whole = exists(pid_file(folder())) && !starting();
    context_.services.signal(record_.handle.child, SIGKILL);
    for (auto wait = 1ms, waited = 0ms; waited < death_patience && (starting() || running());
         waited += wait, wait = std::min(wait * 2, 50ms)) {
      co_await context_.pause(wait);
    }
    if (starting()) {
      remains_ = "the OCI runtime doesn't end";
      co_return false;
    }
    if (!whole || running() || facts_.oci->manager == cgroup_manager::files) {
      auto result = co_await delete_containers(context_, facts_.oci_binary, folder());
      if (!result.failure.empty()) {
        remains_ = result.failure;
        co_return false;
      }
    }
    if (remove_cgroups(*context_.host.cgroups, record_.handle.cgroups)) {
      co_return true;
    }
    bool cleared = co_await clear_cgroups(context_, facts_.engine, record_.handle.cgroups);
    if (!cleared) {
      remains_ = "its cgroup still has processes";
    }
    co_return cleared;
  }

  driver_context& context_;
  const runtime_facts& facts_;
  container_record record_;
  std::string remains_ = "it is still there";
};

/// The runtime that wrote the notes: the one in use, if it is of that kind.
std::string writer_of(const driver_context& context, const oci_container& container,
                      const std::string& binary) {
  auto base = std::filesystem::path{binary}.filename().string();
  bool same = container.runtime.empty() || base.starts_with(container.runtime);
  return same && !binary.empty() ? binary : context.find_program(container.runtime);
}

} // namespace

task<expected<void>> remove_bundle(driver_context& context, const runtime_facts& facts,
                                   container_record record) {
  removal work{context, facts, std::move(record)};
  auto result = co_await work.run();
  co_return result;
}

task<deletion> delete_containers(driver_context& context, std::string binary, std::string folder) {
  deletion done;
  for (const auto& container : noted_containers(folder)) {
    auto runtime = container.runtime.empty() && binary.empty()
                       ? std::string{}
                       : writer_of(context, container, binary);
    std::string complaint = "neither crun nor runc is there to remove it";
    if (!runtime.empty()) {
      auto result = co_await context.run(
          oci_delete_arguments(runtime, runtime_root(folder), container.id), removal_budget);
      complaint = result ? oci_complaint(result->err) : result.error().message;
    }
    bool alive =
        container.pid > 0 && process_alive(context.host, container.pid, container.start_time);
    if (alive) {
      done.failure = fmt::format("container {} lives on: {}", container.id, complaint);
      continue;
    }
    // Notes that their own writer can't read any more are of no use to anybody.
    std::error_code ignored;
    std::filesystem::remove_all(runtime_root(folder) + "/" + container.id, ignored);
    ++done.deleted;
  }
  co_return done;
}

} // namespace bulkhead
