#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/tool_documents.hpp"

namespace bulkhead {

/// The words and signatures of a server's tools, made once so that a search over thousands of tools
/// costs what it finds. Immutable; `documents` must outlive it.
class tool_index {
public:
  explicit tool_index(const server_documents& documents);

  const server_documents& documents() const { return *documents_; }
  std::size_t size() const { return lengths_.size(); }

  /// See tool_signature.
  const std::string& signature(std::size_t tool) const { return signatures_[tool]; }

  /// The weighted number of a tool's words.
  double length(std::size_t tool) const { return lengths_[tool]; }
  double total_length() const { return total_length_; }

  /// Does its text say that it is not to be used any more?
  bool deprecated(std::size_t tool) const { return deprecated_[tool]; }

  /// Adds to `counts[tool]` how often `word` occurs in each tool; words that it begins count for
  /// less.
  void count(std::string_view word, double* counts) const;

private:
  struct occurrence {
    std::uint32_t word;
    std::uint32_t tool;
    float weight;
  };
  class builder;

  std::string_view word(std::size_t index) const {
    return std::string_view{letters_}.substr(begins_[index], begins_[index + 1] - begins_[index]);
  }

  const server_documents* documents_;
  std::string letters_;                 ///< all words, sorted, one after the other
  std::vector<std::uint32_t> begins_;   ///< of each word in `letters_`, and the end of the last
  std::vector<occurrence> occurrences_; ///< by word, then tool
  std::vector<std::uint32_t> first_;    ///< occurrence of each word, and the end of the last's
  std::vector<double> lengths_;
  double total_length_ = 0;
  std::vector<bool> deprecated_;
  std::vector<std::string> signatures_;
};

/// JSON for the guest: documents of one tool or of all tools of a server (`tool` empty).
/// Errors: not_found with suggestions.
expected<std::string> encode_tool_docs(const tool_index& index, std::string_view tool,
                                       bool full_detail);

/// JSON for the guest: the best `limit` documents (at most 50) for `query` among `servers`, ranked
/// by BM25 over names, titles, descriptions and parameter names, prefixes counting for less, and
/// deprecated tools after others that fit as well.
std::string search_tool_documents(const std::vector<const tool_index*>& servers,
                                  std::string_view query, std::uint32_t limit, bool full_detail);

} // namespace bulkhead
