#pragma once

#include <algorithm>
#include <string_view>

#include "protocol/ascii.hpp"

namespace bulkhead {

/// May the character stand in a token (RFC 9110, 5.6.2)?
inline bool is_token_char(char c) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  auto lower = lower_case(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

/// Is it a token, as methods and the names of headers are?
inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

} // namespace bulkhead
