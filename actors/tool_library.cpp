#include "actors/tool_library.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/errors.hpp"
#include "protocol/cached_documents.hpp"
#include "protocol/json_text.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

namespace {

/// Policies whose tools are kept ready: the one in force and the one before.
constexpr std::size_t most_views = 2;
/// Names told of in one answer.
constexpr std::size_t most_names = 20;

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

bool is_callable(const tool_question& question, std::string_view server) {
  const auto& names = question.callable;
  return std::find(names.begin(), names.end(), server) != names.end();
}

/// How a run gets to call a server's tools; empty if it may.
std::string way_to(const tool_question& question, const std::string& server) {
  return is_callable(question, server)
             ? std::string{}
             : fmt::format("pass servers=[{}] to run_python", json_quote(server));
}

error nothing_known(const server_entry& entry) {
  return {errc::not_found,
          fmt::format("nothing is known of the tools of \"{0}\" yet; pass servers=[\"{0}\"] to "
                      "run_python, which starts it",
                      entry.name)};
}

} // namespace

tool_shelf_ptr tool_view::shelve(const documents_ptr& all) {
  auto& place = shelves[all->server];
  if (place.all != all) {
    auto shelf = std::make_shared<const tool_shelf>(allowed_part(rules, all), all);
    search.put({shelf, &shelf->index});
    place = {all, std::move(shelf)};
  }
  return place.shelf;
}

void tool_view::forget(const std::string& server) {
  if (shelves.erase(server) > 0) {
    search.remove(server);
  }
}

tool_library_state::tool_library_state(tool_library_actor::pointer self) : self{self} {}

tool_view& tool_library_state::view_of(const policy& rules) {
  auto found = std::find_if(views.begin(), views.end(),
                            [&](const tool_view& view) { return view.rules == rules; });
  if (found != views.end()) {
    views.splice(views.begin(), views, found);
  } else {
    views.emplace_front(rules);
    if (views.size() > most_views) {
      views.pop_back();
    }
  }
  return views.front();
}

documents_ptr tool_library_state::known_of(const server_entry& entry) {
  auto [found, is_new] = known.try_emplace(cached_documents_name(entry));
  if (is_new) {
    found->second = cache->load(entry);
    ++changes;
  }
  return found->second;
}

void tool_library_state::learn(const server_entry& entry, const documents_ptr& all) {
  auto before = known_of(entry);
  if (before == all) {
    return;
  }
  known[cached_documents_name(entry)] = all;
  ++changes;
  if (!before || *before != *all) {
    cache->store(entry, *all);
  }
}

tool_shelf_ptr tool_library_state::shelve(const catalogue_ptr& catalogue,
                                          const documents_ptr& all) {
  if (const auto* entry = catalogue->find(all->server)) {
    learn(*entry, all);
  }
  return view_of(catalogue->rules).shelve(all);
}

/// What the catalogue's policy allows of all that is known of its servers.
tool_view& tool_library_state::current_view(const catalogue_ptr& catalogue) {
  auto& view = view_of(catalogue->rules);
  if (view.shows == catalogue && view.as_of == changes) {
    return view;
  }
  std::vector<std::string> gone;
  for (const auto& [server, place] : view.shelves) {
    gone.push_back(server);
  }
  for (const auto& entry : catalogue->servers) {
    auto all = allows_server(catalogue->rules, entry.name).allowed ? known_of(entry) : nullptr;
    if (all) {
      view.shelve(all);
      std::erase(gone, entry.name);
    }
  }
  for (const auto& server : gone) {
    view.forget(server);
  }
  view.shows = catalogue;
  view.as_of = changes;
  return view;
}

expected<std::string> tool_library_state::documents_for(const tool_question& question) {
  const auto& call = question.call;
  tool_shelf_ptr shelf;
  if (!question.among.empty()) {
    shelf = question.among.front();
  } else if (const auto* entry = question.catalogue->find(call.server)) {
    auto& view = current_view(question.catalogue);
    auto found = view.shelves.find(entry->name);
    if (found == view.shelves.end()) {
      return tl::unexpected{nothing_known(*entry)};
    }
    shelf = found->second.shelf;
  } else {
    return fail(errc::not_found, fmt::format("there is no server \"{}\"", call.server));
  }
  if (call.stubs) {
    return json_quote(tool_stubs(*shelf->documents));
  }
  return encode_tool_docs(shelf->index, call.tool, call.full_detail,
                          way_to(question, shelf->documents->server));
}

/// Which servers a search left out.
std::string tool_library_state::note_on(const tool_question& question) const {
  const auto& view = views.front();
  std::vector<std::string> names;
  for (const auto& entry : question.catalogue->servers) {
    if (allows_server(view.rules, entry.name).allowed && !view.shelves.contains(entry.name)) {
      names.push_back(entry.name);
    }
  }
  if (names.empty()) {
    return question.failure.message;
  }
  auto first = names.front();
  auto count = names.size();
  names.resize(std::min(count, most_names));
  return fmt::format("{}{}not searched, as nothing is known of their tools before they have been "
                     "started: {}{}; servers=[{}] in run_python starts one",
                     question.failure.message, question.failure.message.empty() ? "" : "; ",
                     fmt::join(names, ", "),
                     count > names.size() ? fmt::format(" and {} more", count - names.size()) : "",
                     json_quote(first));
}

expected<std::string> tool_library_state::search(const tool_question& question) {
  const auto& call = question.call;
  auto& view = current_view(question.catalogue);
  std::string only;
  if (!call.server.empty()) {
    const auto* entry = question.catalogue->find(call.server);
    if (entry == nullptr || !view.shelves.contains(entry->name)) {
      return tl::unexpected{question.failure.code != errc::none ? question.failure
                            : entry != nullptr                  ? nothing_known(*entry)
                                               : error{errc::not_found, "there is no such server"}};
    }
    only = entry->name;
  }
  auto hits = view.search.find(call.query, call.limit, only);
  if (hits.empty() && question.failure.code != errc::none) {
    // An empty list would say that there is no such tool.
    return tl::unexpected{question.failure};
  }
  auto hint = [&](const server_documents& of) { return way_to(question, of.server); };
  auto out = "{\"tools\":" + encode_tool_hits(hits, call.full_detail, hint);
  if (auto note = only.empty() ? note_on(question) : std::string{}; !note.empty()) {
    out += ",\"note\":" + json_quote(note);
  }
  return out + "}";
}

expected<std::string> tool_library_state::text_for(const tool_question& question) {
  const auto& call = question.call;
  switch (call.kind) {
  case guest_call_kind::list_tools:
    return encode_tool_list(question.among.front()->documents->tools);
  case guest_call_kind::query_tool_docs:
    return documents_for(question);
  case guest_call_kind::search_tool_docs:
    return search(question);
  default:
    break;
  }
  const auto& shelf = *question.among.front();
  const auto* tool = find_tool(shelf.documents->tools, call.tool);
  if (tool == nullptr) {
    return tl::unexpected{no_such_tool(*shelf.documents, call.tool)};
  }
  auto why = check_arguments(shelf, *tool, *question.arguments, false);
  if (!why.empty()) {
    return tl::unexpected{unfit_arguments(shelf.documents->server, tool->name, why)};
  }
  return std::string{};
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
tool_library(tool_library_actor::stateful_pointer<tool_library_state> self, environment_ptr env,
             std::string folder) {
  self->state.cache = std::make_unique<document_cache>(std::move(folder), env->log);
  return self->state.make_behavior();
}

} // namespace bulkhead
