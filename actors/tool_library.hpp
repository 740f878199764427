#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/document_cache.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/tool_shelf.hpp"
#include "protocol/tool_search.hpp"

namespace bulkhead {

/// What one policy allows of the tools that are known, to be searched.
struct tool_view {
  explicit tool_view(policy by) : rules{std::move(by)} {}

  struct entry {
    documents_ptr all;
    tool_shelf_ptr shelf;
  };

  /// The shelf of a server's documents, cut by the policy.
  tool_shelf_ptr shelve(const documents_ptr& all);
  void forget(const std::string& server);

  policy rules;
  std::map<std::string, entry> shelves; ///< by raw name; all of them are in `search`
  tool_search search;
  catalogue_ptr shows;     ///< whose servers are in it,
  std::uint64_t as_of = 0; ///< and what was known of them then
};

/// Answers what takes time to answer about tools (thousands of them, some with long documents) on a
/// thread of its own, so that nobody's ping, cancel or deadline waits for it.
struct tool_library_state {
  explicit tool_library_state(tool_library_actor::pointer self);
  tool_library_actor::behavior_type make_behavior();

  tool_shelf_ptr shelve(const catalogue_ptr& catalogue, const documents_ptr& all);
  caf::result<std::string> answer(const tool_question& question);
  expected<std::string> text_for(const tool_question& question);
  expected<std::string> documents_for(const tool_question& question);
  expected<std::string> search(const tool_question& question);
  std::string note_on(const tool_question& question) const;
  documents_ptr known_of(const server_entry& entry);
  void learn(const server_entry& entry, const documents_ptr& all);
  tool_view& view_of(const policy& rules);
  tool_view& current_view(const catalogue_ptr& catalogue);

  tool_library_actor::pointer self;
  std::unique_ptr<document_cache> cache;
  /// The newest documents by name and configuration of their server; null: not even on disk.
  std::map<std::string, documents_ptr> known;
  std::uint64_t changes = 0; ///< of `known`
  /// The latest first: a policy that is no longer in force may be that of runs still going on.
  std::list<tool_view> views;

  static inline const char* name = "tool-library";
};

/// `folder`: where documents are kept from one start to the next; empty: nowhere.
tool_library_actor::behavior_type
tool_library(tool_library_actor::stateful_pointer<tool_library_state> self, environment_ptr env,
             std::string folder);

} // namespace bulkhead
