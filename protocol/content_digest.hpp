#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// What a text is told from any other by: its SHA-256, as 64 hexadecimal digits.
std::string content_digest(std::string_view text);

/// A name for a session, from which its handle can't be had: enough of the handle's digest to tell
/// sessions apart.
std::string session_name(std::string_view handle);

} // namespace bulkhead
