#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace bulkhead {

/// What went wrong, as the one vocabulary of guest, client and log. The names (see `to_string`) are
/// part of what clients and code in the sandbox see.
enum class errc : std::uint8_t {
  none = 0,
  invalid_argument, ///< a value from the client or the configuration is unusable
  malformed,        ///< bytes that are no frame or message of the protocol
  too_large,        ///< over a size, depth or count limit
  denied,           ///< policy or the run's rights forbid it
  not_found,        ///< no such server, tool, resource, file
  unavailable,      ///< container runtime or image is missing or down
  overloaded,       ///< a queue or budget is full; try again later
  limit,            ///< a limit of this run is used up
  timeout,          ///< the deadline passed
  cancelled,        ///< the client asked to stop
  server_failed,    ///< an upstream MCP server failed or is not running
  closed,           ///< the run, session or connection is over
  out_of_memory,    ///< the sandbox hit its memory limit
  runtime_lost,     ///< the sandbox ended without saying why
  internal,         ///< a fault of our own
};

/// The stable name of `code`, e.g. "not_found".
std::string_view to_string(errc code);

/// The inverse of `to_string`; `errc::internal` for an unknown name.
errc errc_from_string(std::string_view name);

/// An error with a text that tells what failed, on what, why, and what the user can do.
struct error {
  errc code = errc::internal;
  std::string message;

  friend bool operator==(const error&, const error&) = default;
};

template <class Inspector>
auto inspect(Inspector& f, error& x) {
  return f(x.code, x.message);
}

/// A value or an error.
template <class T>
using expected = tl::expected<T, error>;

/// Shorthand for returning an error from a function that answers `expected<T>`.
inline tl::unexpected<error> fail(errc code, std::string message) {
  return tl::unexpected<error>(error{code, std::move(message)});
}

} // namespace bulkhead
