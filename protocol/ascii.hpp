#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace bulkhead {

/// A to Z in lower case, every other byte as it is; no locale has a say.
constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return lower_case(c); });
  return result;
}

/// Is `part` in `text`, whatever the case of the letters A to Z?
inline bool contains_ignoring_case(std::string_view text, std::string_view part) {
  auto same = [](char a, char b) { return lower_case(a) == lower_case(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

} // namespace bulkhead
