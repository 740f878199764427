#pragma once

#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/limits.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

/// Reads the argument `files` of a call, a scanned JSON value or empty: an array of {path, text} or
/// {path, b64}. Paths are relative to /workspace, have at most 1,024 bytes, and parts of 1 to 255
/// bytes that are neither "." nor ".." and have no control characters; no two are the same, or one
/// a folder of the other. At most `bounds.input_files` files of `bounds.input_bytes` bytes in all.
/// Errors name the file and what is expected: invalid_argument, too_large.
expected<std::vector<input_file>> read_input_files(std::string_view token, const limits& bounds);

} // namespace bulkhead
