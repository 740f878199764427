#pragma once

#include <memory>
#include <set>
#include <thread>

#include <sys/types.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace bulkhead::io {

/// The one thread that waits on descriptors: child processes, pipes, stdio. Objects that live on it
/// are touched there only; others hand work over with `boost::asio::post(context(), …)`.
class io_thread {
public:
  io_thread();
  /// Stops at once; what is still queued is dropped.
  ~io_thread();
  io_thread(const io_thread&) = delete;
  io_thread& operator=(const io_thread&) = delete;

  boost::asio::io_context& context() { return context_; }

  /// Makes this process the parent of its descendants' orphans (a container's monitor outlives the
  /// command that started it) and reaps them when they end. SIGCHLD must be blocked in every
  /// thread. Call once, before the first child.
  void adopt_orphans();

  /// A child that its owner will reap was started, or has been reaped. On the I/O thread.
  void child_started(pid_t pid) { children_.insert(pid); }
  void child_reaped(pid_t pid);

  /// A child will hand over to an orphan that its owner wants to reap: until it has, none is reaped
  /// here. On the I/O thread, in pairs.
  void expect_successor() { ++expected_; }
  void successor_found();

  /// Ends the thread; idempotent.
  void stop();

private:
  void wait_for_orphans();
  void reap_orphans();

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unique_ptr<boost::asio::posix::stream_descriptor> child_signals_;
  std::set<pid_t> children_;
  std::size_t expected_ = 0; ///< children that have yet to hand over
  std::thread thread_;
};

} // namespace bulkhead::io
