#pragma once

#include <chrono>
#include <string>

#include "main/application.hpp"
#include "protocol/oauth_login.hpp"

namespace bulkhead {

/// HTTP for a command that has nothing else to do meanwhile but to heed signals.
class blocking_http {
public:
  blocking_http(application& app, stop_signal& stop) : app_{app}, stop_{stop} {}

  /// One exchange. Errors: those of the HTTP host, cancelled after a signal.
  expected<http_response> call(const http_request& request, std::chrono::seconds budget);

  /// The same for a login, which wants less.
  oauth_exchange exchange();

  /// Has a signal come that asks the process to end?
  bool interrupted();

private:
  application& app_;
  stop_signal& stop_;
  bool interrupted_ = false;
};

} // namespace bulkhead
