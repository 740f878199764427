#pragma once

#include <atomic>
#include <memory>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <spdlog/logger.h>

#include "actors/activity.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/memory_budget.hpp"
#include "actors/metrics.hpp"
#include "main/stop_signal.hpp"
#include "protocol/limits.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// What all engines of this process share, and outlives them: the log, the I/O thread, the actor
/// system, the bytes that may be held. Made in the order of its members and torn down in the
/// reverse.
class shared_process {
public:
  /// At least `workers` threads run actors, where the machine's size doesn't ask for more.
  shared_process(const settings& config, stop_signal& stop, std::size_t workers = 1);
  /// Everything that was started by then is ended, by force if need be.
  ~shared_process();
  shared_process(const shared_process&) = delete;
  shared_process& operator=(const shared_process&) = delete;

  caf::actor_system& system() { return *system_; }
  io::io_thread& io() { return *io_; }
  const std::shared_ptr<spdlog::logger>& log() const { return log_; }
  const std::shared_ptr<memory_budget>& budget() const { return budget_; }

  /// From now on what goes on is counted; before any engine is started.
  void count_activity();
  /// What goes on; null unless it is counted.
  const std::shared_ptr<activity_board>& board() const { return board_; }
  const std::shared_ptr<metrics>& figures() const { return figures_; }

  /// A core actor is lost for good: the process has to end with status 1. Thread-safe.
  void fail(const std::string& what);
  bool failed() const { return failed_; }

  /// The status that the process will end with, also when the actors don't end in time. Answers it.
  int leave_with(int status) {
    exit_status_ = status;
    return status;
  }

private:
  std::shared_ptr<spdlog::logger> log_;
  std::shared_ptr<memory_budget> budget_;
  std::shared_ptr<metrics> figures_;
  std::shared_ptr<activity_board> board_;
  stop_signal& stop_;
  std::atomic<bool> failed_ = false;
  int exit_status_ = 0;
  std::unique_ptr<io::io_thread> io_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
};

} // namespace bulkhead
