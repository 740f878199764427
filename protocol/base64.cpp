#include "protocol/base64.hpp"

#include <cstdint>

namespace bulkhead {

namespace {

/// The six bits that a character stands for; -1 for any other character.
int sextet(char character) {
  if (character >= 'A' && character <= 'Z') {
    return character - 'A';
  }
  if (character >= 'a' && character <= 'z') {
    return character - 'a' + 26;
  }
  if (character >= '0' && character <= '9') {
    return character - '0' + 52;
  }
  return character == '+' ? 62 : character == '/' ? 63 : -1;
}

std::size_t padding_of(std::string_view text) {
  if (text.substr(text.size() - 2) == "==") {
    return 2;
  }
  return text.back() == '=' ? 1 : 0;
}

} // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string result;
  if (text.empty()) {
    return result;
  }
  result.reserve(text.size() / 4 * 3);
  const auto padding = padding_of(text);
  text.remove_suffix(padding);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char character : text) {
    const int value = sextet(character);
    if (value < 0) {
      return std::nullopt;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      result += static_cast<char>(bits >> held);
      bits &= (1U << held) - 1;
    }
  }
  return bits == 0 ? std::optional{std::move(result)} : std::nullopt;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char byte : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(byte);
    for (held += 8; held >= 6; held -= 6) {
      result += alphabet[(bits >> (held - 6)) & 63];
    }
    bits &= (1U << held) - 1;
  }
  if (held > 0) {
    result += alphabet[(bits << (6 - held)) & 63];
  }
  result.append((4 - result.size() % 4) % 4, '=');
  return result;
}

} // namespace bulkhead
