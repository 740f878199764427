#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

/// What a backslash in a JSON string starts: the character meant and the bytes taken, backslash
/// included; `length` is 0 for an unknown escape or a surrogate that has no partner.
struct json_escape {
  char32_t code = 0;
  std::size_t length = 0;
};

/// Reads the escape whose backslash is `text[at]`.
json_escape read_json_escape(std::string_view text, std::size_t at);

/// The decoded content of a JSON string, given without its quotes; its escapes must be sound.
std::string unescape_json(std::string_view content);

/// Appends `text` as a JSON string literal; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// `text` as a JSON string literal; bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

/// Appends scanned JSON text so that it fits in one line: line ends, which JSON allows between
/// tokens only, become spaces.
void append_json_line(std::string& out, std::string_view json);

} // namespace bulkhead
