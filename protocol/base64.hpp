#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// The bytes that `text` encodes (RFC 4648, section 4): the standard alphabet, padded, no line
/// ends, unused bits zero. Nothing for any other text.
std::optional<std::string> decode_base64(std::string_view text);

/// `bytes` in the same encoding.
std::string encode_base64(std::string_view bytes);

/// `bytes` in the alphabet that is safe in URLs, without padding (RFC 4648, section 5).
std::string encode_base64url(std::string_view bytes);

/// The bytes that a text in that encoding stands for. Nothing for any other text.
std::optional<std::string> decode_base64url(std::string_view text);

} // namespace bulkhead
