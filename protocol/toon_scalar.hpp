#pragma once

#include <string>

namespace bulkhead {

/// The parts of TOON (see toon.hpp) that stand within one line.

/// The only delimiter used: the specification's default for documents and arrays.
inline constexpr char toon_delimiter = ',';

/// A string value, quoted where section 7.2 asks for it; bytes that are not UTF-8 become U+FFFD.
std::string toon_string(const std::string& text);

/// A key or field name, quoted unless section 7.3 allows it bare.
std::string toon_key(const std::string& key);

/// A number in the canonical form of section 2; null if it is not finite.
std::string toon_number(double number);

} // namespace bulkhead
