#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace bulkhead {

/// `value` in Token-Oriented Object Notation, version 4.0 (https://github.com/toon-format/spec,
/// 2026-07-22): comma as delimiter, two spaces a level, no newline at the end; an empty object is
/// an empty text. Numbers that are not finite become null, bytes in strings that are not UTF-8
/// U+FFFD. Recursive: `value`'s depth must be bounded, as a scan does (see json_scan.hpp). Members
/// come in the order in which the value gives them: an `ordered_json` keeps its own.
std::string encode_toon(const nlohmann::json& value);
std::string encode_toon(const nlohmann::ordered_json& value);

} // namespace bulkhead
