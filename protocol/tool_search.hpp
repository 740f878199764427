#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/tool_index.hpp"

namespace bulkhead {

/// A tool that fits a query.
struct tool_hit {
  std::shared_ptr<const tool_index> server;
  std::size_t tool = 0;
  double score = 0;

  const tool_document& document() const { return server->documents().tools[tool]; }
};

/// Full-text search over the tools of many servers, in memory (SQLite's FTS5; it touches no file).
/// Servers come and go one by one; nothing is built anew for a query. For one thread at a time.
///
/// Words are ranked by BM25 over names, titles, descriptions, parameters and servers, each with a
/// weight of its own. A word also finds those that it begins, its synonyms and, where it finds
/// nothing, what is spelled much like it, all of which count for less. Deprecated tools come after
/// others that fit as well.
///
/// Members throw std::runtime_error when SQLite fails, which in memory means that there is no more.
class tool_search {
public:
  tool_search();
  ~tool_search();
  tool_search(const tool_search&) = delete;
  tool_search& operator=(const tool_search&) = delete;

  /// Puts a server's tools in, in place of those that it had.
  void put(std::shared_ptr<const tool_index> tools);
  void remove(std::string_view server);

  /// The best `limit` tools, at most 50; of one server only, unless `server` (a raw name) is empty.
  std::vector<tool_hit> find(std::string_view query, std::uint32_t limit,
                             std::string_view server = {});

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// JSON for the guest: an array of documents with their scores. `hint`: how to get to call a
/// server's tools; empty where nothing is to be done.
std::string encode_tool_hits(const std::vector<tool_hit>& hits, bool full_detail,
                             const std::function<std::string(const server_documents&)>& hint);

} // namespace bulkhead
