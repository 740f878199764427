#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

/// Tools with longer names are left out, in bytes; frames carry no longer ones.
inline constexpr std::size_t longest_tool_name = 256;

/// One tool of one server, as code in the sandbox may learn of it.
struct tool_document {
  std::string name;
  std::string alias; ///< a Python identifier, unique within the server
  std::string title;
  std::string description;
  std::string input_schema = "{}"; ///< JSON text
  std::string output_schema;       ///< JSON text, or empty
  std::string annotations;         ///< JSON text, or empty
  friend bool operator==(const tool_document&, const tool_document&) = default;
};

template <class Inspector>
auto inspect(Inspector& f, tool_document& x) {
  return f(x.name, x.alias, x.title, x.description, x.input_schema, x.output_schema, x.annotations);
}

/// Whether documents that others hold have been overtaken by a change at their server. Shared by
/// copies, thread-safe, and no part of what the documents say.
class staleness {
public:
  void set() const { *flag_ = true; }
  bool is_set() const { return *flag_; }
  friend bool operator==(const staleness&, const staleness&) { return true; }

private:
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

/// A server with its tools.
struct server_documents {
  std::string server;
  std::string alias;
  std::string description;
  std::vector<tool_document> tools;
  std::string version = {}; ///< of the server, as it says
  std::uint32_t hidden = 0; ///< tools that need tasks, which are left out
  staleness outdated{};
  friend bool operator==(const server_documents&, const server_documents&) = default;
};

template <class Inspector>
auto inspect(Inspector& f, server_documents& x) {
  return f(x.server, x.alias, x.description, x.tools, x.version, x.hidden);
}

/// One page of a `tools/list` result.
struct tool_page {
  std::vector<tool_document> tools; ///< aliases not yet given
  std::string next_cursor;          ///< empty on the last page
  std::uint32_t hidden = 0;         ///< tools that need tasks
};

/// Reads a scanned `tools/list` result. Tools without a usable name, or that need tasks
/// (`execution.taskSupport: required`), are left out; optional members of a wrong type count as
/// absent. Schemas keep their members' order. Errors: malformed.
expected<tool_page> parse_tool_page(std::string_view result);

/// Gives each tool its alias; the same names always get the same aliases.
void assign_tool_aliases(std::vector<tool_document>& tools);

/// The tool called `name` (raw name first, then alias), or null.
const tool_document* find_tool(const std::vector<tool_document>& tools, std::string_view name);

/// Up to three names close to `name` by edit distance, best first, for "did you mean". Cheap also
/// for many and long names: names over 128 bytes are left out, and no more than the first 1,000
/// candidates that may be near are compared in full.
std::vector<std::string> similar_names(std::string_view name,
                                       const std::vector<std::string_view>& candidates);
std::vector<std::string> similar_names(std::string_view name,
                                       const std::vector<std::string>& candidates);

/// As similar_names, among the raw names of tools.
std::vector<std::string> similar_tools(std::string_view name,
                                       const std::vector<tool_document>& tools);

/// A Python-like signature from the input schema, required parameters first:
/// `read_file(path: str, head: int = None)`. Names that are no identifiers come last, as
/// `**{"max-depth": int = 3}`.
std::string tool_signature(const tool_document& tool);

/// A type stub (.pyi) of a server's tools, as the module `mcp.servers.<alias>` has them. Valid
/// Python whatever the server calls things.
std::string tool_stubs(const server_documents& documents);

/// JSON for the guest: the `list_tools` answer of one server.
std::string encode_tool_list(const std::vector<tool_document>& tools);

/// The not_found error for `tool`, with what it may have been meant to be.
error no_such_tool(const server_documents& documents, std::string_view tool);

} // namespace bulkhead
