#include "protocol/tool_index.hpp"

#include <algorithm>
#include <string_view>

namespace bulkhead {

namespace {

/// "DEPRECATED" anywhere in capitals, "Deprecated: …", "[deprecated] …", "… is deprecated …"; not a
/// tool that replaces a deprecated one.
bool tells_deprecation(std::string_view text) {
  constexpr std::string_view word = "eprecated";
  if (text.find("DEPRECATED") != std::string_view::npos) {
    return true;
  }
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    auto before = text.substr(0, at - std::min<std::size_t>(at, 1));
    bool begins = std::none_of(before.begin(), before.end(), [](char c) {
      return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    });
    if (at > 0 && (text[at - 1] | 32) == 'd' && (begins || before.ends_with(" is "))) {
      return true;
    }
  }
  return false;
}

} // namespace

tool_index::tool_index(const server_documents& documents) : documents_{&documents} {
  for (const auto& tool : documents.tools) {
    deprecated_.push_back(tells_deprecation(tool.title) || tells_deprecation(tool.description));
    signatures_.push_back(tool_signature(tool));
  }
}

} // namespace bulkhead
