#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/error.hpp"

namespace bulkhead::io {

/// Waits on loopback for the one request that ends a login in the browser (RFC 8252, 7.3). It
/// serves nothing else, and no part of what it is sent comes back in an answer.
class redirect_listener {
public:
  /// Listens on 127.0.0.1, at a free port if `port` is 0. Errors: unavailable.
  static expected<std::unique_ptr<redirect_listener>> open(std::uint16_t port);
  virtual ~redirect_listener() = default;

  /// Where the browser is to be sent.
  virtual std::string uri() const = 0;

  /// The query of the first request for `uri` that `accepts` takes; others are refused, and it goes
  /// on waiting. Blocks; asks `cancelled` ten times a second. Errors: timeout, cancelled.
  virtual expected<std::string> wait(const std::function<bool(std::string_view query)>& accepts,
                                     std::chrono::steady_clock::time_point until,
                                     const std::function<bool()>& cancelled) = 0;

  /// How many requests for `uri` were refused.
  virtual std::uint32_t refused() const = 0;
};

} // namespace bulkhead::io
