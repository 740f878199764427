// Calls of tools that need a person's yes: a stored approval of the tool as it is defined now, or
// an answer to a question that the client puts to the person. One question at a time.

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "actors/invocation.hpp"
#include "actors/tool_shelf.hpp"
#include "protocol/approval_question.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// The store reads a small file.
constexpr auto store_patience = 10s;
/// Code mustn't be able to wear a person down.
constexpr std::uint32_t most_people_asked = 16;

/// A word for a shell.
std::string quoted(const std::string& word) {
  bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"_-./:@"}.find(c) != std::string_view::npos;
  });
  if (plain) {
    return word;
  }
  std::string result = "'";
  for (char c : word) {
    result += c == '\'' ? std::string{"'\\''"} : std::string{c};
  }
  return result + "'";
}

} // namespace

void invocation_state::need_approval(link& to, const tool_document& tool, guest_call& call,
                                     std::string rule) {
  approvals.push_back(
      {&to, std::move(call), std::move(rule), {to.brief.name, tool.name, definition_digest(tool)}});
  next_approval();
}

void invocation_state::next_approval() {
  if (approval_open || approvals.empty()) {
    return;
  }
  approval_open = true;
  const auto& what = approvals.front().what;
  if (declined.contains({what.server, what.tool})) {
    deny_unapproved("a person has said no to it in this run");
    return;
  }
  if (!context.approvals) {
    ask_person();
    return;
  }
  self->request(context.approvals(), store_patience, read_atom::value, what)
      .then(
          [this](approval_state state) {
            if (approvals.empty()) {
              return; // the run is over
            }
            approvals.front().changed = state == approval_state::changed;
            state == approval_state::approved ? approve(false) : ask_person();
          },
          [this](const caf::error& reason) {
            context.env->log->warn("{}", from_caf(reason, "read the stored approvals").message);
            ask_person();
          });
}

void invocation_state::ask_person() {
  if (approvals.empty()) {
    return;
  }
  if (++people_asked > most_people_asked) {
    deny_unapproved(fmt::format("{} questions in one run are enough", most_people_asked));
    return;
  }
  const auto& wanted = approvals.front();
  report(fmt::format("waiting for a person's yes to {}/{}", wanted.what.server, wanted.what.tool));
  auto params = approval_question(wanted.what.server, wanted.what.tool, wanted.call.arguments,
                                  wanted.rule, wanted.changed);
  ask_client({}, "elicitation/create", std::move(params),
             [this](const expected<std::string>& result) {
               result ? take_decision(*result) : deny_unapproved(result.error().message);
             });
}

void invocation_state::take_decision(const std::string& result) {
  if (approvals.empty()) {
    return;
  }
  switch (read_decision(result)) {
  case approval_decision::once:
    approve(false);
    return;
  case approval_decision::always:
    approve(true);
    return;
  case approval_decision::no:
    break;
  }
  const auto& what = approvals.front().what;
  declined.emplace(what.server, what.tool);
  deny_unapproved("the person said no");
}

/// What was approved is the tool as it was when the call came.
void invocation_state::approve(bool for_good) {
  auto& wanted = approvals.front();
  const auto& what = wanted.what;
  const auto* tool = find_tool(wanted.to->tools->all->tools, what.tool);
  if (now != phase::running || wanted.withdrawn) {
    deny_unapproved("the run is stopped");
    return;
  }
  if (tool == nullptr || tool->name != what.tool || definition_digest(*tool) != what.definition ||
      !may_call(what.server, *tool).allowed) {
    deny_unapproved("its definition has changed while a person was asked");
    return;
  }
  if (wanted.to->tools->all->outdated.is_set()) {
    deny_unapproved("the server's tools have changed while a person was asked");
    return;
  }
  if (auto why = withdrawn(what.server, what.tool); !why.empty()) {
    deny_unapproved(why);
    return;
  }
  if (for_good && context.approvals) {
    // A later call's request to the store comes after this one.
    self->request(context.approvals(), store_patience, save_atom::value, what)
        .then([](caf::ok_atom) {},
              [this](const caf::error& reason) {
                context.env->log->warn("an approval holds for one call only: {}",
                                       from_caf(reason, "store it").message);
              });
  }
  send_call(*wanted.to, what.tool, wanted.call);
  approval_dealt_with();
}

void invocation_state::deny_unapproved(const std::string& why) {
  if (approvals.empty()) {
    return;
  }
  const auto& wanted = approvals.front();
  const auto& what = wanted.what;
  if (wanted.withdrawn) {
    approval_dealt_with();
    return;
  }
  refuse(wanted.call.id,
         {errc::denied,
          fmt::format("tool \"{}\" of \"{}\" needs a person's yes by policy: {}; {}{}; to allow "
                      "it until its definition changes, the user runs: bulkhead approve {}",
                      what.tool, what.server, wanted.rule,
                      wanted.changed ? "it was approved once, but its definition has changed "
                                       "since, and "
                                     : "",
                      why, quoted(what.server + "/" + what.tool))});
  approval_dealt_with();
}

/// The code gave up on a call: nobody need be asked about it, and no yes to it counts any more.
bool invocation_state::withdraw_approval(std::uint64_t id) {
  auto is_it = [id](const approval& each) { return each.call.id == id && !each.withdrawn; };
  auto found = std::find_if(approvals.begin(), approvals.end(), is_it);
  if (found == approvals.end()) {
    return false;
  }
  refuse(id, {errc::cancelled, "the code gave up on the call"});
  if (approval_open && found == approvals.begin()) {
    found->withdrawn = true;
  } else {
    approvals.erase(found);
  }
  return true;
}

void invocation_state::approval_dealt_with() {
  approvals.pop_front();
  approval_open = false;
  next_approval();
}

} // namespace bulkhead
