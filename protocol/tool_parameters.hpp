#pragma once

#include <string>
#include <vector>

#include "protocol/tool_documents.hpp"

namespace bulkhead {

/// A parameter of a tool, as Python would have it.
struct tool_parameter {
  std::string name;      ///< as the server calls it
  std::string type;      ///< e.g. `list[str] | None`
  std::string otherwise; ///< what it is if it isn't given: a literal, or `...`
  bool required = false;
  bool identifier = true; ///< the name is one
};

/// What the input schema says of them: required ones first, names that are no identifiers last.
std::vector<tool_parameter> tool_parameters(const tool_document& tool);

} // namespace bulkhead
