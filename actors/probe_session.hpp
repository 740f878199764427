#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/container_launch.hpp"
#include "actors/container_removal.hpp"

namespace bulkhead {

/// A container that runs bulkhead_probe.py (in /ipc) and answers its commands. It is started,
/// limited and removed exactly as a run's container is.
class probe_session {
public:
  probe_session(driver_context& context, const runtime_facts& facts)
      : context_{context}, facts_{facts} {}
  probe_session(const probe_session&) = delete;
  ~probe_session();

  /// Starts it and waits for its first line; answers the image's Python version. Errors:
  /// unavailable with the engine's complaint; `exit_code` and `complaint` then tell more.
  task<expected<std::string>> open(cgroup_limits limits);

  /// Sends one command line and waits for the answer, one line of JSON.
  task<expected<std::string>> ask(std::string command);

  /// Removes the container and its folder.
  task<expected<void>> close();

  /// Events of the child, from the driver.
  void take(const child_output& output);
  void take(const child_exited& exit);

  const container_record& record() const { return record_; }
  bool out_of_memory() const { return out_of_memory_was_seen(record_.handle.folder); }
  bool ended() const { return exit_.has_value(); }
  std::int32_t exit_code() const { return exit_ ? exit_->exit_code : 0; }
  const std::string& complaint() const { return complaint_; }

private:
  task<expected<std::string>> next_line();
  task<expected<void>> start(cgroup_limits limits);
  void wake(bool in_time);

  driver_context& context_;
  const runtime_facts& facts_;
  container_record record_;
  std::string received_;
  std::string complaint_;
  std::optional<child_exited> exit_;
  std::function<void(bool)> waiting_; ///< the flag: something arrived in time
  /// Tells a wait from earlier ones; shared with timers, which may outlive the session.
  std::shared_ptr<std::uint64_t> wait_number_ = std::make_shared<std::uint64_t>(0);
};

} // namespace bulkhead
