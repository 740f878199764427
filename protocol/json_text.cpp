#include "protocol/json_text.hpp"

#include <algorithm>
#include <optional>

#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/// The value of the four hexadecimal digits at `text[at]`; nothing if they aren't.
std::optional<char32_t> hex4(std::string_view text, std::size_t at) {
  if (text.size() < at + 4) {
    return std::nullopt;
  }
  char32_t value = 0;
  for (const char digit : text.substr(at, 4)) {
    value <<= 4;
    if (is_digit(digit)) {
      value |= static_cast<char32_t>(digit - '0');
    } else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f') {
      value |= static_cast<char32_t>((digit | 0x20) - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

json_escape unicode_escape(std::string_view text, std::size_t at) {
  const auto first = hex4(text, at + 2);
  if (!first || (*first >= 0xDC00 && *first <= 0xDFFF)) {
    return {};
  }
  if (*first < 0xD800 || *first > 0xDBFF) {
    return {*first, 6};
  }
  if (text.substr(at + 6, 2) != "\\u") {
    return {};
  }
  const auto second = hex4(text, at + 8);
  if (!second || *second < 0xDC00 || *second > 0xDFFF) {
    return {};
  }
  return {0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00), 12};
}

void append_escaped(std::string& out, char byte) {
  switch (byte) {
  case '"':
    out += "\\\"";
    break;
  case '\\':
    out += "\\\\";
    break;
  case '\n':
    out += "\\n";
    break;
  case '\r':
    out += "\\r";
    break;
  case '\t':
    out += "\\t";
    break;
  default:
    out += "\\u00";
    out += hex_digits[static_cast<unsigned char>(byte) >> 4];
    out += hex_digits[byte & 0xF];
  }
}

} // namespace

json_escape read_json_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) {
    return {};
  }
  switch (text[at + 1]) {
  case '"':
    return {U'"', 2};
  case '\\':
    return {U'\\', 2};
  case '/':
    return {U'/', 2};
  case 'b':
    return {U'\b', 2};
  case 'f':
    return {U'\f', 2};
  case 'n':
    return {U'\n', 2};
  case 'r':
    return {U'\r', 2};
  case 't':
    return {U'\t', 2};
  case 'u':
    return unicode_escape(text, at);
  default:
    return {};
  }
}

std::string unescape_json(std::string_view content) {
  std::string result;
  result.reserve(content.size());
  std::size_t at = 0;
  while (at < content.size()) {
    const auto next = std::min(content.find('\\', at), content.size());
    result.append(content.substr(at, next - at));
    at = next;
    if (at < content.size()) {
      const auto [code, length] = read_json_escape(content, at);
      append_utf8(result, code);
      at += std::max<std::size_t>(length, 1);
    }
  }
  return result;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const auto plain = plain_run(text, at);
    out.append(text.substr(at, plain));
    at += plain;
    if (at == text.size()) {
      break;
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      append_escaped(out, text[at]);
      ++at;
    } else {
      at += append_character(out, text, at);
    }
  }
  out += '"';
}

std::string json_quote(std::string_view text) {
  std::string result;
  result.reserve(text.size() + 2);
  append_json_string(result, text);
  return result;
}

void append_json_line(std::string& out, std::string_view json) {
  const auto start = static_cast<std::string::difference_type>(out.size());
  out.append(json);
  std::replace(out.begin() + start, out.end(), '\n', ' ');
  std::replace(out.begin() + start, out.end(), '\r', ' ');
}

} // namespace bulkhead
