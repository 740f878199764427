#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace bulkhead {

/// What main waits for: a signal that asks the process to end, or another thread's word. Made
/// before any thread is started: it blocks the signals for all of them.
class stop_signal {
public:
  /// Blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, and ignores SIGPIPE. Throws std::system_error when
  /// the kernel refuses a descriptor.
  stop_signal();
  ~stop_signal();
  stop_signal(const stop_signal&) = delete;
  stop_signal& operator=(const stop_signal&) = delete;

  /// Wakes `wait`; from any thread, also after `wait` has returned.
  void notify();

  /// Waits for a signal (its number), for `notify` (0), or for the time to pass (nothing).
  std::optional<int> wait(std::optional<std::chrono::milliseconds> limit = {});

private:
  int signals_ = -1;
  int event_ = -1;
};

} // namespace bulkhead
