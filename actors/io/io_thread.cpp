#include "actors/io/io_thread.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include <boost/asio/post.hpp>

namespace bulkhead::io {

namespace {

/// Signals are for the main thread alone, which waits for them.
void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

} // namespace

io_thread::io_thread() : work_{boost::asio::make_work_guard(context_)} {
  thread_ = std::thread{[this] {
    block_all_signals();
    pthread_setname_np(pthread_self(), "bulkhead-io");
    context_.run();
  }};
}

io_thread::~io_thread() {
  stop();
}

void io_thread::adopt_orphans() {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  int fd = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0 || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    throw std::system_error{errno, std::generic_category(), "adopt orphans"};
  }
  boost::asio::post(context_, [this, fd] {
    child_signals_ = std::make_unique<boost::asio::posix::stream_descriptor>(context_, fd);
    wait_for_orphans();
  });
}

void io_thread::wait_for_orphans() {
  child_signals_->async_wait(
      boost::asio::posix::stream_descriptor::wait_read, [this](const auto& failure) {
        if (failure) {
          return;
        }
        signalfd_siginfo info{};
        while (::read(child_signals_->native_handle(), &info, sizeof info) > 0) {
        }
        reap_orphans();
        wait_for_orphans();
      });
}

void io_thread::reap_orphans() {
  if (expected_ > 0) {
    return;
  }
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    if (children_.contains(info.si_pid)) {
      // Its owner reaps it; `child_reaped` then looks for the next.
      return;
    }
    ::waitpid(info.si_pid, nullptr, 0);
    info = {};
  }
}

void io_thread::child_reaped(pid_t pid) {
  children_.erase(pid);
  if (child_signals_) {
    reap_orphans();
  }
}

void io_thread::successor_found() {
  --expected_;
  if (child_signals_) {
    reap_orphans();
  }
}

void io_thread::stop() {
  work_.reset();
  context_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

} // namespace bulkhead::io
