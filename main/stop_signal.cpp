#include "main/stop_signal.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace bulkhead {

stop_signal::stop_signal() {
  sigset_t stopping;
  sigemptyset(&stopping);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&stopping, signal);
  }
  sigset_t blocked = stopping;
  // Orphans of our children are reaped through a descriptor of the I/O thread.
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = ::signalfd(-1, &stopping, SFD_CLOEXEC | SFD_NONBLOCK);
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signals_ < 0 || event_ < 0) {
    throw std::system_error{errno, std::generic_category(), "wait for signals"};
  }
}

stop_signal::~stop_signal() {
  ::close(signals_);
  ::close(event_);
}

void stop_signal::notify() {
  std::uint64_t one = 1;
  [[maybe_unused]] auto ignored = ::write(event_, &one, sizeof one);
}

std::optional<int> stop_signal::wait(std::optional<std::chrono::milliseconds> limit) {
  std::array<pollfd, 2> waiting{{{signals_, POLLIN, 0}, {event_, POLLIN, 0}}};
  auto until = std::chrono::steady_clock::now() + limit.value_or(std::chrono::milliseconds{0});
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    int count = ::poll(waiting.data(), waiting.size(),
                       limit ? static_cast<int>(std::max<long>(left.count(), 0)) : -1);
    if (count == 0) {
      return {};
    }
    if (count < 0) {
      continue;
    }
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) == sizeof info) {
      return static_cast<int>(info.ssi_signo);
    }
    std::uint64_t drained = 0;
    if (::read(event_, &drained, sizeof drained) > 0) {
      return 0;
    }
  }
}

} // namespace bulkhead
