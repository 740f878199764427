#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// The SHA-256 of `bytes` in hex.
std::string hex_digest(std::string_view bytes);

} // namespace bulkhead
