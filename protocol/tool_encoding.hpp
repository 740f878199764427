#pragma once

#include <string>
#include <string_view>

#include "protocol/tool_documents.hpp"

namespace bulkhead {

/// What is told of a tool besides its document.
struct tool_remarks {
  std::string score; ///< a JSON number, or empty for none
  std::string hint;  ///< how to get to call it, or empty
};

/// Appends one document as `query_tool_docs` and `search_tool_docs` answer it. Without full detail
/// the description is its first paragraph, at most 240 bytes, and schemas are left out.
void append_tool_document(std::string& out, const server_documents& server,
                          const tool_document& tool, std::string_view signature, bool full_detail,
                          const tool_remarks& remarks);

} // namespace bulkhead
