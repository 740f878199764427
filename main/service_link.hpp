#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "actors/io/service_notice.hpp"
#include "main/shared_process.hpp"

namespace bulkhead {

/// What ties a server to the service manager that may have started it (systemd): the socket that it
/// was given, and how it stands. Without a manager all of it does nothing. What can't be told is a
/// warning in the log.
class service_link {
public:
  /// Before any thread is started. Errors: invalid_argument (sockets of which it isn't clear which
  /// one is meant).
  static expected<service_link> take();

  ~service_link();
  service_link(service_link&&) noexcept;
  service_link& operator=(service_link&&) noexcept = delete;

  /// The socket that was handed over; whoever asks owns it.
  std::optional<int> socket() const { return socket_; }

  /// It serves; from the first time on there are signs of life as long as the I/O thread and the
  /// actors do their work.
  void ready(shared_process& process, std::string_view status);
  void reloading(shared_process& process);
  void stopping(shared_process& process);

private:
  service_link() = default;

  std::optional<int> socket_;
  std::shared_ptr<io::service_watchdog> watchdog_;
};

} // namespace bulkhead
