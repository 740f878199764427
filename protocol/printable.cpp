#include "protocol/printable.hpp"

#include <iterator>

#include <fmt/format.h>

#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

/// The character at the start of `text` that must not reach a terminal, and its length in bytes; 0
/// for one that may.
struct unsafe_character {
  unsigned code = 0;
  std::size_t length = 0;
};

/// Turns the direction of writing, breaks a line where no line feed does, or has no width.
bool misleads(unsigned code) {
  return code == 0x2028 || code == 0x2029 || code == 0x200B || (code >= 0x2060 && code <= 0x2064) ||
         code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

unsafe_character find_unsafe(std::string_view text) {
  auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  if ((byte(0) < 0x20 && text[0] != '\n' && text[0] != '\t') || byte(0) == 0x7F) {
    return {byte(0), 1};
  }
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) {
    return {byte(1), 2};
  }
  if (byte(0) == 0xD8 && byte(1) == 0x9C) {
    return {0x061C, 2};
  }
  if (byte(0) == 0xE2 && (byte(1) & 0xC0) == 0x80 && (byte(2) & 0xC0) == 0x80) {
    auto code = 0x2000U | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    return {code, misleads(code) ? 3U : 0U};
  }
  return {};
}

} // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto found = find_unsafe(text);
    if (found.length > 0) {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", found.code);
      text.remove_prefix(found.length);
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) {
    text.resize(trim_split_end(std::string_view{text}.substr(0, most)).size());
    text += "…";
  }
  return text;
}

} // namespace bulkhead
