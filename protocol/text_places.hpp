#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace bulkhead {

/// Where in `text` a line and a column (both from 1, the column in characters) is, in bytes; its
/// end if there is no such place.
inline std::size_t offset_of(std::string_view text, std::size_t line, std::size_t column) {
  std::size_t at = 0;
  for (; line > 1 && at < text.size(); --line) {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  auto continues = [&] {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  for (; column > 1 && at < text.size(); --column) {
    do {
      ++at;
    } while (continues());
  }
  return at;
}

/// The begin of the line in which the byte `at` is, and its end, which is that of its line feed, or
/// of the text.
inline std::size_t line_begin(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1; // npos + 1 is 0
}
inline std::size_t line_end(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// The first byte from `at` on that is neither blank nor of a comment of TOML.
inline std::size_t skip_toml_blank(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (at == text.size() || text[at] != '#') {
      return at;
    }
    at = line_end(text, at);
  }
  return at;
}

} // namespace bulkhead
