#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "actors/messages.hpp"
#include "protocol/json_schema.hpp"
#include "protocol/tool_index.hpp"

namespace bulkhead {

/// What policy allows of a server's tools, with their index; made once and shared by all runs.
struct tool_shelf {
  explicit tool_shelf(documents_ptr allowed, documents_ptr every = nullptr)
      : documents{std::move(allowed)}, all{every ? std::move(every) : documents}, index{
                                                                                      *documents} {}

  /// The input schema of one of the documents' tools, compiled when it is first asked for; null if
  /// it is of no use. From any thread.
  std::shared_ptr<const json_schema> schema_of(const tool_document& tool) const;

  documents_ptr documents;
  documents_ptr all; ///< with those that policy hides, which nobody is told of but in a refusal
  tool_index index;

private:
  mutable std::mutex lock_;
  mutable std::unordered_map<const tool_document*, std::shared_ptr<const json_schema>> schemas_;
};

/// Bytes of arguments and schema together that are checked at once; more take longer than anybody
/// should wait who isn't concerned.
inline constexpr std::size_t quickly_checked = 16 * kibibyte;

/// What is wrong with a call's arguments (scanned JSON) by the tool's schema; empty: nothing, or
/// that can't be told. `quick`: gives up after some milliseconds.
std::string check_arguments(const tool_shelf& shelf, const tool_document& tool,
                            std::string_view arguments, bool quick);

/// The refusal of a call for such a reason.
error unfit_arguments(std::string_view server, std::string_view tool, std::string_view why);

} // namespace bulkhead
