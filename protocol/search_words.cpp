#include "protocol/search_words.hpp"

namespace bulkhead {

namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// Bytes of other scripts' letters count as letters.
bool is_word(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
}

/// Does a new word begin at `text[i]`, as in readFile, HTTPServer?
bool is_hump(std::string_view text, std::size_t i) {
  if (i == 0 || !is_upper(text[i])) {
    return false;
  }
  return is_lower(text[i - 1]) || is_digit(text[i - 1]) ||
         (is_upper(text[i - 1]) && i + 1 < text.size() && is_lower(text[i + 1]));
}

} // namespace

std::vector<std::string> search_words(std::string_view text) {
  std::vector<std::string> result;
  std::string word;
  auto end_word = [&] {
    if (!word.empty()) {
      result.push_back(std::move(word));
      word.clear();
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_word(text[i])) {
      end_word();
      continue;
    }
    if (is_hump(text, i)) {
      end_word();
    }
    word += is_upper(text[i]) ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  }
  end_word();
  return result;
}

} // namespace bulkhead
