// What a run's code may learn of tools, those of servers that it doesn't have included, and whether
// its arguments fit. Nothing here starts a server.

#include "actors/invocation.hpp"

#include <algorithm>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "actors/tool_shelf.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

/// The configuration as it is now: what a later run could call.
catalogue_ptr invocation_state::present_catalogue() const {
  auto present = context.configured ? context.configured->get() : nullptr;
  return present ? present : catalogue;
}

/// May the run know of a server that it can't call?
bool invocation_state::may_know(std::string_view server) const {
  auto present = present_catalogue();
  const auto* entry = present->find(server);
  return entry != nullptr && allows_server(present->rules, entry->name).allowed;
}

void invocation_state::search(const guest_call& call) {
  if (!call.server.empty() && find_link(call.server) == nullptr && !may_know(call.server)) {
    refuse_unknown_server(call);
    return;
  }
  searches.push_back(call);
  finish_searches();
}

void invocation_state::finish_searches() {
  auto connecting = [](const auto& entry) { return entry.second.now == link::state::connecting; };
  if (std::any_of(links.begin(), links.end(), connecting)) {
    return;
  }
  for (auto& call : std::exchange(searches, {})) {
    ask_library(std::move(call), {});
  }
}

void invocation_state::about_servers(tool_question& question) const {
  const auto& call = question.call;
  question.catalogue = present_catalogue();
  for (const auto& [name, to] : links) {
    question.callable.push_back(name);
    bool meant = call.server.empty() || to.is_called(call.server);
    if (call.kind == guest_call_kind::search_tool_docs && meant && !to.tools &&
        !to.failure.message.empty()) {
      question.failure = to.failure;
    }
  }
}

/// Unless they do, the call is refused, or goes on when the library has looked at them.
bool invocation_state::arguments_fit(link& to, const tool_document& tool, guest_call& call) {
  if (call.arguments.size() + tool.input_schema.size() > quickly_checked) {
    check_elsewhere(to, call);
    return false;
  }
  auto why = check_arguments(*to.tools, tool, call.arguments, true);
  if (!why.empty()) {
    refuse(call.id, unfit_arguments(to.brief.name, tool.name, why));
  }
  return why.empty();
}

void invocation_state::check_elsewhere(link& to, guest_call& call) {
  auto arguments = std::make_shared<std::string>(std::move(call.arguments));
  tool_question question{std::move(call), {to.tools}, answer_room{budget}};
  question.arguments = arguments;
  self->request(context.library, time_left() + 1s, question)
      .then(
          [this, &to, arguments, call = question.call](const std::string&) mutable {
            if (now != phase::running) {
              refuse(call.id, {errc::closed, "the run is stopped"});
              return;
            }
            call.arguments = std::move(*arguments);
            call_tool(to, call, true);
          },
          [this, id = question.call.id, tool = question.call.tool](const caf::error& reason) {
            refuse(id, from_caf(reason, "check the arguments of tool " + tool));
          });
}

} // namespace bulkhead
