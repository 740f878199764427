#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// What a text is told from any other by: its SHA-256, as 64 hexadecimal digits.
std::string content_digest(std::string_view text);

} // namespace bulkhead
