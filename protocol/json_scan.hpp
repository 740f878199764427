#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

/// What a JSON text may cost before it is refused.
struct scan_limits {
  std::size_t bytes;
  std::size_t depth = 64;
  std::size_t nodes = 100'000;
};

/// A member of the outermost object: its decoded key and its value's text as it stands in the
/// input.
struct json_member {
  std::string key;
  std::string_view value;
};

/// What a scan learned about a text without building a tree of it.
struct json_outline {
  /// The outermost value's text, white space around it left out.
  std::string_view text;
  /// The outermost object's members, in order; empty when it is no object.
  std::vector<json_member> members;
  bool is_object = false;

  /// The text of the member called `key`; empty when there is none.
  std::string_view find(std::string_view key) const;
};

/// Where and why a text was refused, for who shows the place in a file.
struct json_fault {
  std::size_t offset = 0;
  std::string why;
  std::string duplicate_key; ///< decoded; empty when the fault is another
};

/// Checks that `text` is one JSON value (RFC 8259) in valid UTF-8 without duplicate keys in any
/// object, within the limits, using memory for open objects' keys only and no recursion. Escapes of
/// lone surrogates are refused because no UTF-8 can hold them, and so is a byte order mark.
/// A number may lie outside what a double holds: who builds a DOM of the text must expect that.
/// Errors: malformed (with the byte offset), too_large (naming the limit); `fault`, unless null, is
/// told the same in parts.
expected<json_outline> scan_json(std::string_view text, const scan_limits& limits,
                                 json_fault* fault = nullptr);

/// The decoded string of a scanned JSON string token, quotes included in `token`; empty for others.
std::string decode_json_string(std::string_view token);

/// True if `token`, scanned JSON text, is a string, an object, an array, or an integer without
/// fraction and exponent.
bool is_json_string(std::string_view token);
bool is_json_object(std::string_view token);
bool is_json_array(std::string_view token);
bool is_json_integer(std::string_view token);

} // namespace bulkhead
