#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "actors/io/io_thread.hpp"
#include "protocol/error.hpp"

/// What a service manager (systemd) gives to a service and wants to hear of it. Where there is none
/// (no NOTIFY_SOCKET in the environment) nothing is told, and that is no error.

namespace bulkhead::io {

/// A socket that listens already, and the name that its unit gives it (FileDescriptorName=).
struct handed_socket {
  int descriptor = -1;
  std::string name;
};

/// The sockets that were handed over at the start (sd_listen_fds(3)); whoever asks owns them. Takes
/// what tells of them out of the environment, so that no child believes they were its own: call it
/// once, while there is one thread. Errors: invalid_argument (the variables make no sense).
expected<std::vector<handed_socket>> take_handed_sockets();

/// Sends notices (sd_notify(3)); each error is `unavailable`, with the socket. Thread-safe.
struct service_notice {
  /// The start, or the reading of a new configuration, is done.
  static expected<void> ready(std::string_view status);
  /// A new configuration is being read; `ready` follows.
  static expected<void> reloading();
  static expected<void> stopping(std::string_view status);
  /// A line for people, as `systemctl status` shows it.
  static expected<void> status(std::string_view text);
  /// A sign of life, for the watchdog.
  static expected<void> alive();
};

/// How long the service manager waits for a sign of life before it ends this process
/// (WatchdogSec=); nothing: it expects none.
std::optional<std::chrono::microseconds> watchdog_time();

/// Gives signs of life as long as the I/O thread and whoever is asked answer. A question that isn't
/// answered isn't asked again, and no sign is given until it is.
class service_watchdog : public std::enable_shared_from_this<service_watchdog> {
public:
  /// Asked on the I/O thread; calls back, from any thread, when the answer has come.
  using question = std::function<void(std::function<void()> answered)>;

  /// Asks at once, and then three times within `time`; `sign` is called on the I/O thread.
  static std::shared_ptr<service_watchdog> start(io_thread& io, std::chrono::microseconds time,
                                                 question ask, std::function<void()> sign);
  /// Asks no more, and gives no more signs, once it returns. Thread-safe.
  void stop();

  service_watchdog(io_thread& io, std::chrono::microseconds time, question ask,
                   std::function<void()> sign);

private:
  void look();
  void answered();

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  std::chrono::microseconds pause_;
  question ask_;
  std::function<void()> sign_;
  bool waits_ = false;
  std::mutex stopping_; ///< held while asking and giving signs
  bool stopped_ = false;
};

} // namespace bulkhead::io
