#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// `text` with what could drive a terminal or turn its lines around written as `\u001b`: control
/// characters other than newline and tab, C1 controls, characters that change the direction of
/// writing (Bidi_Control: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), that break a
/// line (U+2028, U+2029) and that have no width (U+200B, U+2060 to U+2064). JSON text keeps its
/// meaning, since these can only stand in its strings.
std::string printable(std::string_view text);

/// `text`, or, where it has more than `most` bytes, its beginning and an ellipsis; the beginning
/// never ends within a character.
std::string shortened(std::string text, std::size_t most);

} // namespace bulkhead
