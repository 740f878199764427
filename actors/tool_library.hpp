#pragma once

#include <map>
#include <memory>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/interfaces.hpp"
#include "protocol/tool_index.hpp"

namespace bulkhead {

/// What policy allows of a server's tools, with their index; made once and shared by all runs.
struct tool_shelf {
  explicit tool_shelf(documents_ptr allowed, documents_ptr every = nullptr)
      : documents{std::move(allowed)}, all{every ? std::move(every) : documents}, index{
                                                                                      *documents} {}

  documents_ptr documents;
  documents_ptr all; ///< with those that policy hides, which nobody is told of but in a refusal
  tool_index index;
};

/// Answers what takes time to answer about tools (thousands of them, some with long documents) on a
/// thread of its own, so that nobody's ping, cancel or deadline waits for it.
struct tool_library_state {
  explicit tool_library_state(tool_library_actor::pointer self);
  tool_library_actor::behavior_type make_behavior();

  /// The newest documents of a server, as policy cuts them.
  struct entry {
    documents_ptr all;
    catalogue_ptr catalogue;
    tool_shelf_ptr shelf;
  };

  tool_shelf_ptr shelve(const catalogue_ptr& catalogue, const documents_ptr& all);
  caf::result<std::string> answer(const tool_question& question);

  tool_library_actor::pointer self;
  std::map<std::string, entry> entries; ///< by the server's raw name

  static inline const char* name = "tool-library";
};

tool_library_actor::behavior_type
tool_library(tool_library_actor::stateful_pointer<tool_library_state> self);

} // namespace bulkhead
