#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "protocol/tool_documents.hpp"

namespace bulkhead {

/// What is worked out once of a server's tools. Immutable; `documents` must outlive it.
class tool_index {
public:
  explicit tool_index(const server_documents& documents);

  const server_documents& documents() const { return *documents_; }
  std::size_t size() const { return signatures_.size(); }

  /// See tool_signature.
  const std::string& signature(std::size_t tool) const { return signatures_[tool]; }

  /// Does its text say that it is not to be used any more?
  bool deprecated(std::size_t tool) const { return deprecated_[tool]; }

private:
  const server_documents* documents_;
  std::vector<bool> deprecated_;
  std::vector<std::string> signatures_;
};

/// JSON for the guest: documents of one tool or of all tools of a server (`tool` empty). `hint`,
/// unless empty, is how to get to call them.
/// Errors: not_found with suggestions.
expected<std::string> encode_tool_docs(const tool_index& index, std::string_view tool,
                                       bool full_detail, std::string_view hint = {});

} // namespace bulkhead
