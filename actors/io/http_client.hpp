#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/io/curl_driver.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/messages.hpp"
#include "protocol/error.hpp"
#include "protocol/settings.hpp"

namespace bulkhead::io {

class http_transfer;

/// What an exchange tells whoever began it.
struct http_events {
  /// The answer begins; not called for a redirect that is followed.
  std::function<void(std::uint32_t status, std::vector<http_header> headers)> head;
  std::function<void(std::string)> body;
  /// The last word; `errc::none` when the answer is complete. Errors: unavailable (nothing was
  /// sent), closed (the connection broke, so that the request may have been carried out), timeout,
  /// denied, too_large, malformed (no HTTP), invalid_argument (the request can't be sent).
  std::function<void(error)> end;
};

/// HTTP to servers elsewhere, on the I/O thread; every member function is called there. Connections
/// are kept and used again, HTTP/2 is spoken where the server does, and proxies are those of the
/// variables that libcurl knows. A request with a body that reached a server in part or as a whole
/// is never sent again.
class http_client {
public:
  /// Exchanges at once; one more fails with overloaded.
  static constexpr std::size_t most_exchanges = 512;

  /// Throws std::runtime_error when the system has no descriptors left.
  http_client(io_thread& io, environment_lookup variable);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  /// Begins an exchange. `due`: until when it must be complete. `credit`: bytes of the answer's
  /// body that may come before more is given.
  void begin(exchange_id id, bulkhead::http_request request,
             std::optional<std::chrono::steady_clock::time_point> due, std::uint64_t credit,
             http_events to);

  /// Allows that many more bytes of the body.
  void add_credit(exchange_id id, std::uint64_t bytes);

  /// Drops the exchange, without a word.
  void cancel(exchange_id id);

private:
  void over(CURL* transfer, CURLcode outcome);
  void finish(exchange_id id, error reason);
  std::optional<error> start(http_transfer& transfer);

  environment_lookup variable_;
  std::shared_ptr<curl_driver> driver_;
  std::unordered_map<exchange_id, std::unique_ptr<http_transfer>> transfers_;
};

} // namespace bulkhead::io
