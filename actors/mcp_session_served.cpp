// What a session serves besides its own things; see served_things.

#include "actors/mcp_session.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;
using kind = served_things::kind;

/// For the client's answer to a question.
constexpr seconds question_patience{60};

std::string joined(const std::vector<std::string>& entries, std::string first = {}) {
  for (const auto& each : entries) {
    first += first.empty() ? "" : ",";
    first += each;
  }
  return first;
}

/// Numbers as notifications have them: of 100.
std::string progress_of_hundred(std::string_view token, std::uint32_t done) {
  return fmt::format(R"({{"progressToken":{},"progress":{},"total":100}})", token, done);
}

} // namespace

bool mcp_session_state::dispatch_served(const rpc_message& message, const mcp_request& request) {
  if (message.method == "tools/call" || message.method == "prompts/get") {
    auto name = request.text("name").value_or("");
    if (context.served->knows(message.method, name)) {
      call_served(message, request, std::move(name));
      return true;
    }
    return false;
  }
  if (message.method == "completion/complete") {
    auto about = outline_of_part(request.find("ref"));
    auto name = decode_json_string(about.find("name"));
    if (context.served->knows("prompts/get", name)) {
      respond(message.id, plain_result(R"("completion":{"values":[],"total":0,"hasMore":false})",
                                       form_for(request)));
      return true;
    }
    return false;
  }
  return list_served(message, request) || use_served_resource(message, request);
}

/// Lists with what is served besides first; pages aren't for these.
bool mcp_session_state::list_served(const rpc_message& message, const mcp_request& request) {
  if (!request.find("cursor").empty()) {
    return false;
  }
  auto form = form_for(request);
  if (message.method == "tools/list") {
    auto entries = joined(context.served->entries(kind::tools));
    respond(message.id, tool_list_result(entries + "," + tool, form));
  } else if (message.method == "prompts/list") {
    auto entries = joined(context.served->entries(kind::prompts), prompt_definition());
    respond(message.id, list_result("prompts", entries, form));
  } else if (message.method == "resources/list") {
    auto entries = joined(context.served->entries(kind::resources));
    respond(message.id, list_result("resources", entries, form));
  } else if (message.method == "resources/templates/list") {
    auto entries = joined(context.served->entries(kind::templates));
    respond(message.id, list_result("resourceTemplates", entries, form));
  } else {
    return false;
  }
  return true;
}

bool mcp_session_state::use_served_resource(const rpc_message& message,
                                            const mcp_request& request) {
  auto uri = request.text("uri").value_or("");
  auto content = context.served->content(uri);
  if (content.empty()) {
    return false;
  }
  if (message.method == "resources/read") {
    respond(message.id, list_result("contents", content, form_for(request)));
    return true;
  }
  if (request.modern || message.method != "resources/subscribe") {
    return false;
  }
  subscribed.insert(std::move(uri));
  respond(message.id, empty_result(form_for(request)));
  return true;
}

void mcp_session_state::call_served(const rpc_message& message, const mcp_request& request,
                                    std::string name) {
  auto back = begin_or_come_back(message, request);
  if (!back) {
    return;
  }
  run_in_flight run;
  run.request = message.id;
  run.form = form_for(request);
  run.abilities = abilities_of(request);
  run.digest = call_digest(name, request.find("arguments"));
  run.progress_token = request.progress_token;
  run.log_level = request.modern ? request.log_level : log_level;
  run.since = self->clock().now();
  run.what.id = context.env->new_handle();
  run.early = std::move(back->answers);
  served_run made;
  made.call.method = message.method;
  made.call.name = std::move(name);
  made.call.arguments = request.find("arguments");
  made.call.abilities = run.abilities;
  auto id = run.what.id;
  requests.emplace(message.id, id);
  runs.emplace(id, std::move(run));
  served.emplace(id, std::move(made));
  step_served(id);
}

void mcp_session_state::step_served(const std::string& id) {
  auto found = served.find(id);
  if (found == served.end()) {
    return;
  }
  if (runs.count(id) == 0) {
    // The client has cancelled it.
    served.erase(found);
    return;
  }
  auto step = context.served->next(found->second.call);
  if (step.pause.count() > 0 && !std::exchange(found->second.rested, true)) {
    self->delayed_send(self, step.pause, tick_atom::value, call_atom::value, id);
    return;
  }
  found->second.rested = false;
  take_step(id, std::move(step));
}

void mcp_session_state::take_step(const std::string& id, served_step step) {
  auto& run = runs[id];
  if (step.progress && !run.progress_token.empty()) {
    write_for(run.request,
              encode_notification("notifications/progress",
                                  progress_of_hundred(run.progress_token, *step.progress)));
  }
  if (!step.log.empty() && run.log_level && *run.log_level <= log_severity::info) {
    write_for(run.request,
              encode_notification("notifications/message",
                                  log_params(log_severity::info, json_quote(step.log))));
  }
  if (step.changed != served_step::list::none) {
    tell_changed(step.changed == served_step::list::tools ? &changing_lists::tools
                                                          : &changing_lists::prompts);
  }
  if (step.breaks_off && context.break_off) {
    context.break_off(run.request);
  }
  if (!step.result.empty() || step.refusal) {
    finish_served(id, std::move(step));
    return;
  }
  if (!step.questions.empty()) {
    ask_served(id, step.questions);
    return;
  }
  ++served[id].call.steps;
  step_served(id);
}

void mcp_session_state::ask_served(const std::string& id,
                                   const std::vector<input_request>& questions) {
  served[id].asked = questions.size();
  for (const auto& each : questions) {
    client_question asked{id,
                          {},
                          each.method,
                          each.params,
                          deadline::at(self->clock().now() + question_patience),
                          each.key};
    self->request(mcp_session_actor{self}, question_patience + seconds{1}, std::move(asked))
        .then([this, id, key = each.key](
                  std::string& answer) { answered_served(id, key, std::move(answer), false); },
              [this, id, key = each.key](const caf::error& reason) {
                answered_served(id, key, from_caf(reason, "ask the client").message, true);
              });
  }
}

void mcp_session_state::answered_served(const std::string& id, const std::string& key,
                                        std::string answer, bool refused) {
  auto found = served.find(id);
  if (found == served.end()) {
    return;
  }
  auto& call = found->second.call;
  (refused ? call.refusals : call.answers).emplace(key, std::move(answer));
  if (--found->second.asked == 0) {
    ++call.steps;
    step_served(id);
  }
}

void mcp_session_state::finish_served(const std::string& id, served_step step) {
  served.erase(id);
  auto run = std::move(runs.extract(id).mapped());
  if (step.refusal) {
    auto request = std::exchange(run.request, {});
    requests.erase(request);
    refuse(request, *step.refusal);
  } else {
    run_answer answer;
    answer.status = run_status::success;
    conclude(run, plain_result(std::move(step.result), run.form), answer);
  }
  end_if_idle();
}

} // namespace bulkhead
