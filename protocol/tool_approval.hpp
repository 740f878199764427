#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

struct tool_document;

/// A tool as it was defined at some time.
struct tool_identity {
  std::string server; ///< raw names
  std::string tool;
  std::string definition; ///< see definition_digest
  friend bool operator==(const tool_identity&, const tool_identity&) = default;
};

template <class I>
auto inspect(I& f, tool_identity& x) {
  return f(x.server, x.tool, x.definition);
}

/// The SHA-256 (hex) of what a tool is said to do: its name, description, input schema and
/// annotations.
std::string definition_digest(const tool_document& tool);

enum class approval_state : std::uint8_t {
  none,     ///< nobody has approved the tool
  approved, ///< as it is defined now
  changed,  ///< as it was defined once, which is another definition
};

/// A person's yes to all calls of a tool.
struct tool_approval {
  tool_identity what;
  std::int64_t at = 0; ///< milliseconds since 1970
  friend bool operator==(const tool_approval&, const tool_approval&) = default;
};

/// Reads the file's text; an empty text holds none. Errors: malformed.
expected<std::vector<tool_approval>> parse_approvals(std::string_view text);
std::string encode_approvals(const std::vector<tool_approval>& approvals);

approval_state state_of(const std::vector<tool_approval>& approvals, const tool_identity& what);

/// Puts an approval in the place of an earlier one of the same tool.
void add_approval(std::vector<tool_approval>& approvals, tool_approval made);

} // namespace bulkhead
