#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

/// The length in bytes, 1 to 4, of the well-formed UTF-8 character at `text[at]`; 0 if there is
/// none (Unicode 15, table 3-7: no surrogates, no overlong forms, nothing cut short). `at` is less
/// than the text's size.
std::size_t utf8_character(std::string_view text, std::size_t at);

/// How many bytes from `text[at]` on are ASCII that a JSON string may hold as they are: no control
/// character, quote or backslash.
std::size_t plain_run(std::string_view text, std::size_t at);

/// How many bytes from `text[at]` on are well-formed characters of more than one byte each.
std::size_t multibyte_run(std::string_view text, std::size_t at);

/// True if `text` is valid UTF-8.
bool is_utf8(std::string_view text);

/// `text` as valid UTF-8: each maximal ill-formed part (Unicode 15, section 3.9) becomes one
/// U+FFFD.
std::string to_utf8(std::string_view text);

/// Appends the character at `text[at]`, or U+FFFD in place of the ill-formed part that starts there
/// (as `to_utf8` does); the number of bytes of `text` that this took.
std::size_t append_character(std::string& out, std::string_view text, std::size_t at);

/// `text` without the beginning of a character that its end cuts short, if there is one.
std::string_view trim_split_end(std::string_view text);

/// `text` without the rest of a character that its start cuts short: at most three continuation
/// bytes.
std::string_view trim_split_start(std::string_view text);

/// Appends the UTF-8 form of the Unicode scalar value `code`.
void append_utf8(std::string& out, char32_t code);

} // namespace bulkhead
