#include "actors/io/service_notice.hpp"

#include <cstdlib>
#include <cstring>
#include <ctime>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <systemd/sd-daemon.h>

namespace bulkhead::io {

namespace {

using std::chrono::microseconds;

expected<void> send(const std::string& state) {
  if (int outcome = ::sd_notify(0, state.c_str()); outcome < 0) {
    const char* where = std::getenv("NOTIFY_SOCKET");
    return fail(errc::unavailable,
                fmt::format("the service manager can't be told \"{}\" at {}: {}; is NOTIFY_SOCKET "
                            "right, and may this account write to it?",
                            state.substr(0, state.find('\n')), where == nullptr ? "" : where,
                            std::strerror(-outcome)));
  }
  return {};
}

/// A notice is lines of NAME=VALUE: a text is one line.
std::string one_line(std::string_view text) {
  std::string line{text};
  for (auto& c : line) {
    if (static_cast<unsigned char>(c) < ' ') {
      c = ' ';
    }
  }
  return line;
}

} // namespace

expected<std::vector<handed_socket>> take_handed_sockets() {
  char** names = nullptr;
  int count = ::sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return fail(errc::invalid_argument,
                fmt::format("the sockets that were handed over can't be taken: {}; LISTEN_FDS and "
                            "LISTEN_PID must be as systemd sets them",
                            std::strerror(-count)));
  }
  std::vector<handed_socket> handed;
  for (int i = 0; i < count; ++i) {
    handed.push_back({SD_LISTEN_FDS_START + i, names[i]});
    std::free(names[i]);
  }
  std::free(names);
  return handed;
}

expected<void> service_notice::ready(std::string_view status) {
  return send(fmt::format("READY=1\nSTATUS={}", one_line(status)));
}

expected<void> service_notice::reloading() {
  // Units of Type=notify-reload want to know when it began.
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                          now.tv_sec * std::int64_t{1'000'000} + now.tv_nsec / 1000));
}

expected<void> service_notice::stopping(std::string_view status) {
  return send(fmt::format("STOPPING=1\nSTATUS={}", one_line(status)));
}

expected<void> service_notice::status(std::string_view text) {
  return send("STATUS=" + one_line(text));
}

expected<void> service_notice::alive() {
  return send("WATCHDOG=1");
}

std::optional<microseconds> watchdog_time() {
  std::uint64_t time = 0;
  if (::sd_watchdog_enabled(0, &time) <= 0) {
    return std::nullopt;
  }
  return microseconds{static_cast<std::int64_t>(time)};
}

std::shared_ptr<service_watchdog> service_watchdog::start(io_thread& io, microseconds time,
                                                          question ask,
                                                          std::function<void()> sign) {
  auto made = std::make_shared<service_watchdog>(io, time, std::move(ask), std::move(sign));
  boost::asio::post(io.context(), [made] { made->look(); });
  return made;
}

service_watchdog::service_watchdog(io_thread& io, microseconds time, question ask,
                                   std::function<void()> sign)
    : context_{io.context()}, timer_{context_}, pause_{time / 3}, ask_{std::move(ask)},
      sign_{std::move(sign)} {}

void service_watchdog::stop() {
  {
    std::lock_guard guard{stopping_};
    stopped_ = true;
  }
  boost::asio::post(context_, [self = shared_from_this()] { self->timer_.cancel(); });
}

void service_watchdog::look() {
  std::lock_guard guard{stopping_};
  if (stopped_) {
    return;
  }
  if (!std::exchange(waits_, true)) {
    ask_([weak = weak_from_this(), &context = context_] {
      boost::asio::post(context, [weak] {
        if (auto self = weak.lock()) {
          self->answered();
        }
      });
    });
  }
  timer_.expires_after(pause_);
  timer_.async_wait(
      [self = shared_from_this()](const boost::system::error_code&) { self->look(); });
}

void service_watchdog::answered() {
  waits_ = false;
  std::lock_guard guard{stopping_};
  if (!stopped_) {
    sign_();
  }
}

} // namespace bulkhead::io
