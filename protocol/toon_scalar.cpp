#include "protocol/toon_scalar.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

bool is_word(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         byte == '_';
}

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) {
    ++at;
  }
  return at;
}

/// Section 7.2: /^[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?$/i
bool is_numeric_like(std::string_view text) {
  std::size_t at = text.front() == '+' || text.front() == '-' ? 1 : 0;
  auto next = skip_digits(text, at);
  if (next == at) {
    return false;
  }
  at = next;
  if (at < text.size() && text[at] == '.') {
    next = skip_digits(text, at + 1);
    if (next == at + 1) {
      return false;
    }
    at = next;
  }
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    at += at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 2 : 1;
    next = skip_digits(text, at);
    if (next == at) {
      return false;
    }
    at = next;
  }
  return at == text.size();
}

/// Section 7.2. A leading byte order mark is quoted, too: a reader may drop it at a text's start.
bool needs_quotes(std::string_view text) {
  if (text.empty() || text == "true" || text == "false" || text == "null") {
    return true;
  }
  const char first = text.front();
  const char last = text.back();
  if (first == ' ' || last == ' ' || first == '-' || first == '#' ||
      text.substr(0, byte_order_mark.size()) == byte_order_mark || is_numeric_like(text)) {
    return true;
  }
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == toon_delimiter || byte == ':' ||
        byte == '"' || byte == '\\' || byte == '[' || byte == ']' || byte == '{' || byte == '}') {
      return true;
    }
  }
  return false;
}

/// Section 7.1.
std::string toon_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char byte : text) {
    switch (byte) {
    case '"':
      result += "\\\"";
      break;
    case '\\':
      result += "\\\\";
      break;
    case '\n':
      result += "\\n";
      break;
    case '\r':
      result += "\\r";
      break;
    case '\t':
      result += "\\t";
      break;
    default:
      if (static_cast<unsigned char>(byte) < 0x20) {
        result += fmt::format("\\u{:04x}", static_cast<unsigned char>(byte));
      } else {
        result += byte;
      }
    }
  }
  return result + '"';
}

} // namespace

std::string toon_string(const std::string& text) {
  if (!is_utf8(text)) {
    return toon_string(to_utf8(text));
  }
  return needs_quotes(text) ? toon_quoted(text) : text;
}

/// Section 7.3: ^[A-Za-z_][A-Za-z0-9_.]*$ goes unquoted.
std::string toon_key(const std::string& key) {
  if (!is_utf8(key)) {
    return toon_key(to_utf8(key));
  }
  bool bare = !key.empty() && is_word(key.front()) && !is_digit(key.front());
  for (const char byte : key) {
    bare = bare && (is_word(byte) || byte == '.');
  }
  return bare ? key : toon_quoted(key);
}

/// Section 2: decimal from 1e-6 to 1e21 (excluded), beyond that with a signed exponent.
std::string toon_number(double number) {
  if (!std::isfinite(number)) {
    return "null";
  }
  if (number == 0) {
    return "0";
  }
  const auto size = std::abs(number);
  const bool decimal = size >= 1e-6 && size < 1e21;
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    decimal ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), written.ptr);
  // to_chars pads the exponent to two digits; the canonical form doesn't.
  if (const auto sign = text.find_last_of("+-"); !decimal && text[sign + 1] == '0') {
    text.erase(sign + 1, 1);
  }
  return text;
}

} // namespace bulkhead
