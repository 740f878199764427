#include "protocol/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace bulkhead {

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The six bits that each character stands for; -1 for any other character.
constexpr std::array<std::int8_t, 256> sextets = [] {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return table;
}();

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
    const int value = sextets[static_cast<unsigned char>(character)];
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

std::string encode_base64url(std::string_view bytes) {
  auto text = encode_base64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.erase(text.find_last_not_of('=') + 1);
  return text;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string standard{text};
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  return decode_base64(standard);
}

} // namespace bulkhead
