#include "actors/tool_library.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

namespace {

documents_ptr allowed_part(const policy& rules, const documents_ptr& all) {
  auto denied = [&](const tool_document& tool) {
    return !allows_tool(rules, all->server, tool).allowed;
  };
  if (std::none_of(all->tools.begin(), all->tools.end(), denied)) {
    return all;
  }
  auto allowed = std::make_shared<server_documents>(*all);
  std::erase_if(allowed->tools, denied);
  return allowed;
}

expected<std::string> text_for(const tool_question& question) {
  const auto& call = question.call;
  switch (call.kind) {
  case guest_call_kind::list_tools:
    return encode_tool_list(question.among.front()->documents->tools);
  case guest_call_kind::query_tool_docs:
    return encode_tool_docs(question.among.front()->index, call.tool, call.full_detail);
  case guest_call_kind::search_tool_docs: {
    std::vector<const tool_index*> indexes;
    for (const auto& shelf : question.among) {
      indexes.push_back(&shelf->index);
    }
    return search_tool_documents(indexes, call.query, call.limit, call.full_detail);
  }
  default:
    return tl::unexpected{no_such_tool(*question.among.front()->documents, call.tool)};
  }
}

} // namespace

tool_library_state::tool_library_state(tool_library_actor::pointer self) : self{self} {}

tool_shelf_ptr tool_library_state::shelve(const catalogue_ptr& catalogue,
                                          const documents_ptr& all) {
  auto& entry = entries[all->server];
  if (entry.all != all || entry.catalogue != catalogue) {
    entry = {all, catalogue,
             std::make_shared<const tool_shelf>(allowed_part(catalogue->rules, all), all)};
  }
  return entry.shelf;
}

caf::result<std::string> tool_library_state::answer(const tool_question& question) {
  auto text = text_for(question);
  if (!text) {
    return to_caf(text.error());
  }
  if (!question.room.take(text->size())) {
    return to_caf(errc::overloaded,
                  "there is no memory for the documents now; ask for fewer at once, or later");
  }
  return std::move(*text);
}

tool_library_actor::behavior_type tool_library_state::make_behavior() {
  return {
      [this](documents_atom, const catalogue_ptr& catalogue, const documents_ptr& all) {
        return shelve(catalogue, all);
      },
      [this](const tool_question& question) { return answer(question); },
  };
}

tool_library_actor::behavior_type
tool_library(tool_library_actor::stateful_pointer<tool_library_state> self) {
  return self->state.make_behavior();
}

} // namespace bulkhead
