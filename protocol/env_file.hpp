#pragma once

#include <map>
#include <string>
#include <string_view>

#include "protocol/error.hpp"

namespace bulkhead {

/// The bound on such a file, in bytes.
inline constexpr std::size_t largest_env_file = 256 * 1024;

/// Reads lines of `NAME=VALUE`, with `export` before them or without, empty ones and comments (`#`)
/// between them. A value may stand in quotes; between double ones `\\n`, `\\r`, `\\t`, `\\"` and
/// `\\\\` are what they are in C. Without quotes it ends before ` #` and the white space at the end
/// of the line. Nothing is expanded, and the last one of a name counts. Errors, which show no
/// value: malformed, with the line.
expected<std::map<std::string, std::string>> read_env_file(std::string_view text);

} // namespace bulkhead
