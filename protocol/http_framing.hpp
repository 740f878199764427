#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"

namespace bulkhead {

/// Where a request ends, and where the next begins: whatever two readers could take in two ways, so
/// that a request hides within another (RFC 9112, 11.2), is refused here rather than mended. It
/// goes before the parser, which is more lenient in places.

/// Bytes that a request's header may have.
struct head_bounds {
  std::size_t line;  ///< the first line
  std::size_t whole; ///< with the empty line at its end
};

/// How many bytes the header at the beginning of what has come takes; 0 when more of it must come.
/// The error is the status to refuse with: 400 (control characters, lines that end in LF alone or
/// go on in the next one, no request at all), 414 or 431.
tl::expected<std::size_t, std::uint32_t> length_of_head(std::string_view come,
                                                        const head_bounds& bounds);

/// Is it said in one way only how long the body is, and does the client ask for nothing that we
/// can't do? The error is 400 or 417.
tl::expected<void, std::uint32_t> check_framing(const incoming_request& request, bool old_client);

} // namespace bulkhead
