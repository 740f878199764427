#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/io/http_reply.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/memory_budget.hpp"
#include "protocol/error.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/limits.hpp"

namespace bulkhead::io {

/// What a client may cost before it is refused or given up.
struct http_bounds {
  std::size_t connections = 256;
  std::size_t header = 16 * kibibyte; ///< bytes of a request's header, and of a chunked body's
                                      ///< trailer
  std::size_t fields = 100;           ///< lines of a header
  std::size_t body = limits{}.line;
  /// Bytes that wait for a client; one that lets more pile up is given up.
  std::size_t write_ahead = 4 * mebibyte;

  std::chrono::milliseconds idle_time{60'000};   ///< between two requests
  std::chrono::milliseconds header_time{10'000}; ///< for a header, from its first byte
  std::chrono::milliseconds dawdle_time{1'000};  ///< for a header, where others want the room
  std::chrono::milliseconds body_time{20'000};   ///< for a body, and a second more for each…
  std::size_t body_rate = 32 * kibibyte;         ///< … of this many bytes
  std::chrono::milliseconds write_time{30'000};  ///< within which a client takes at least something
};

struct http_listener_options {
  std::string address = "127.0.0.1"; ///< numeric, IPv4 or IPv6
  std::uint16_t port = 0;            ///< 0: one that is free
  http_rules rules;
  http_bounds bounds;
  /// Told the status of each answer as it begins, on the I/O thread. Null: nobody is.
  std::function<void(std::uint32_t status)> answered{};
  std::shared_ptr<memory_budget> budget; ///< for bodies that come and answers that wait
};

/// A request that came whole and passed `check_head`. The share is for its body.
using http_request_handler =
    std::function<void(incoming_request request, memory_budget::share held, http_reply_ptr reply)>;

/// Accepts connections and takes requests from them, one at a time on each, in order. Whatever is
/// wrong with one concerns its client alone. Lives as long as its connections.
class http_listener {
public:
  virtual ~http_listener() = default;

  /// Listens at once; `handle` is called on the I/O thread. Errors: invalid_argument (the address),
  /// unavailable (the port is taken, …).
  static expected<std::shared_ptr<http_listener>> open(io_thread& io, http_listener_options options,
                                                       http_request_handler handle);

  virtual std::uint16_t port() const = 0;

  /// Stops accepting, closes connections that wait for a request and the others after their
  /// answers. Thread-safe; `done`, if given, is called on the I/O thread when none is left.
  virtual void close(std::function<void()> done) = 0;
};

} // namespace bulkhead::io
