#include "protocol/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace bulkhead {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// What may follow a lead byte: the character's length, 0 for no lead byte, and the range of its
/// second byte (Unicode 15, table 3-7; all later bytes are 80 to BF).
struct lead_rule {
  std::uint8_t length = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
};

constexpr lead_rule make_rule(unsigned lead) {
  lead_rule rule;
  if (lead < 0x80) {
    rule.length = 1;
  } else if (lead >= 0xC2 && lead < 0xF5) {
    rule.length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    rule.low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    rule.high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  }
  return rule;
}

constexpr auto lead_rules = [] {
  std::array<lead_rule, 256> rules{};
  for (unsigned lead = 0; lead < rules.size(); ++lead) {
    rules[lead] = make_rule(lead);
  }
  return rules;
}();

bool is_ascii(char byte) {
  return static_cast<unsigned char>(byte) < 0x80;
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// How many bytes at `text[at]` are well-formed as far as they go, and how many the character
/// needs.
struct matched {
  std::size_t found;
  std::size_t needed;
};

matched match(std::string_view text, std::size_t at) {
  const auto& rule = lead_rules[static_cast<unsigned char>(text[at])];
  if (rule.length < 2) {
    return {rule.length, rule.length};
  }
  const auto end = std::min(text.size(), at + rule.length);
  auto next = at + 1;
  if (next < end) {
    const auto second = static_cast<unsigned char>(text[next]);
    if (second < rule.low || second > rule.high) {
      return {1, rule.length};
    }
    ++next;
  }
  while (next < end && is_continuation(text[next])) {
    ++next;
  }
  return {next - at, rule.length};
}

constexpr std::uint64_t every(std::uint64_t byte) {
  return byte * 0x0101010101010101ULL;
}

/// Non-zero if one of the eight bytes is zero.
constexpr std::uint64_t zero_byte(std::uint64_t word) {
  return (word - every(1)) & ~word & every(0x80);
}

/// Non-zero if one of the eight bytes is no ASCII, a control character, a quote or a backslash.
constexpr std::uint64_t special_byte(std::uint64_t word) {
  const auto high = word & every(0x80);
  const auto control = (word - every(0x20)) & ~word & every(0x80);
  return high | control | zero_byte(word ^ every('"')) | zero_byte(word ^ every('\\'));
}

bool is_plain(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= 0x20 && value < 0x80 && value != '"' && value != '\\';
}

} // namespace

std::size_t plain_run(std::string_view text, std::size_t at) {
  auto next = at;
  while (text.size() - next >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + next, sizeof word);
    if (special_byte(word) != 0) {
      break;
    }
    next += sizeof word;
  }
  while (next < text.size() && is_plain(text[next])) {
    ++next;
  }
  return next - at;
}

std::size_t multibyte_run(std::string_view text, std::size_t at) {
  auto next = at;
  while (next < text.size() && !is_ascii(text[next])) {
    const auto [found, needed] = match(text, next);
    if (found != needed || needed == 0) {
      break;
    }
    next += needed;
  }
  return next - at;
}

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at += plain_run(text, at);
    if (at < text.size()) {
      const auto length = is_ascii(text[at]) ? 1 : multibyte_run(text, at);
      if (length == 0) {
        return false;
      }
      at += length;
    }
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const auto plain = plain_run(text, at);
    result.append(text.substr(at, plain));
    at += plain;
    if (at < text.size()) {
      at += append_character(result, text, at);
    }
  }
  return result;
}

std::size_t append_character(std::string& out, std::string_view text, std::size_t at) {
  const auto [found, needed] = match(text, at);
  if (found == needed && needed > 0) {
    out.append(text.substr(at, needed));
    return needed;
  }
  out.append(replacement);
  return std::max<std::size_t>(found, 1);
}

std::string_view trim_split_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto at = text.size() - back;
    if (!is_continuation(text[at])) {
      const auto [found, needed] = match(text, at);
      return found == back && found < needed ? text.substr(0, at) : text;
    }
  }
  return text;
}

std::string_view trim_split_start(std::string_view text) {
  for (int dropped = 0; dropped < 3 && !text.empty() && is_continuation(text.front()); ++dropped) {
    text.remove_prefix(1);
  }
  return text;
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

} // namespace bulkhead
