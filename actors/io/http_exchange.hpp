#pragma once

#include <chrono>
#include <functional>

#include "actors/io/io_thread.hpp"
#include "actors/messages.hpp"
#include "protocol/error.hpp"

namespace bulkhead::io {

/// Answers of services are short; one over this many bytes is refused.
inline constexpr std::size_t longest_http_body = std::size_t{1} << 20;

/// One HTTP/1.1 request over a unix socket on a connection of its own, and its answer, whatever its
/// status. On the I/O thread; `done` is called there, once and later. Errors: closed (nobody
/// listens: nothing was sent), runtime_lost (the connection broke), too_large, timeout.
void exchange(io_thread& io, socket_request request, std::chrono::steady_clock::time_point due,
              std::function<void(expected<socket_answer>)> done);

} // namespace bulkhead::io
