#include "actors/mcp_session.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/json_rpc.hpp"
#include "protocol/json_text.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

namespace {

/// Cancelled runs are waited for at most this long when the session stops.
constexpr std::chrono::seconds stop_budget{10};

scan_limits message_limits(const limits& bounds) {
  return {bounds.line, bounds.json_depth, bounds.json_nodes};
}

rpc_refusal unknown_method(std::string_view method) {
  return {
      rpc_code::method_not_found, fmt::format("Method not found: {}", method.substr(0, 100)), {}};
}

} // namespace

mcp_session_state::mcp_session_state(mcp_session_impl_actor::pointer self) : self{self} {}

void mcp_session_state::write(std::string message) {
  self->send(out, message_atom::value, std::move(message));
}

void mcp_session_state::write_for(std::string_view request, std::string message) {
  self->send(out, message_atom::value, std::string{request}, std::move(message));
}

void mcp_session_state::respond(std::string_view request, std::string_view result) {
  write_for(request, encode_result(request, result));
}

void mcp_session_state::refuse(std::string_view request, const rpc_refusal& reason) {
  auto message = encode_error(request, reason.code, reason.message, reason.data);
  request.empty() ? write(std::move(message)) : write_for(request, std::move(message));
}

answer_form mcp_session_state::form_for(const mcp_request& request) const {
  // A client that asks without `initialize` gets what the latest legacy revision has.
  return {request.modern, revision.empty() ? latest_legacy_revision : std::string_view{revision}};
}

bool mcp_session_state::in_flight(std::string_view request) const {
  return requests.count(request) > 0 || subscriptions.count(request) > 0 ||
         reads.count(request) > 0;
}

void mcp_session_state::take_message(const std::string& text) {
  if (now != phase::open || text.find_first_not_of(" \t\r") == std::string::npos) {
    return;
  }
  auto bounds = message_limits(context.env->bounds);
  auto message = parse_rpc(text, bounds);
  if (!message) {
    std::string id;
    auto reason = explain_unreadable(text, message.error(), bounds, id);
    refuse(id, reason);
    return;
  }
  switch (message->kind) {
  case rpc_kind::request:
    take_request(*message);
    break;
  case rpc_kind::notification:
    take_notification(*message);
    break;
  case rpc_kind::response:
    take_response(*message);
    break;
  }
}

void mcp_session_state::take_message(const std::string& text, trace_context from) {
  arriving = std::move(from);
  take_message(text);
  arriving = {};
}

/// What the message itself says goes before what its transport does.
trace_context mcp_session_state::trace_of(const mcp_request& request) const {
  return request.trace.parent.empty() ? arriving : request.trace;
}

void mcp_session_state::take_notification(const rpc_message& message) {
  if (message.method == "notifications/initialized") {
    ready = true;
  }
  if (message.method != "notifications/cancelled") {
    return;
  }
  // A malformed cancellation is ignored, as the protocol has it.
  if (auto request = read_mcp_request(message, message_limits(context.env->bounds))) {
    auto id = request->find("requestId");
    cancel(is_json_string(id) ? json_quote(decode_json_string(id)) : std::string{id});
  }
}

void mcp_session_state::take_request(const rpc_message& message) {
  if (in_flight(message.id)) {
    refuse(message.id, {rpc_code::invalid_request,
                        fmt::format("the id {} is in use by a request that isn't answered yet; use "
                                    "a fresh id for each request",
                                    message.id),
                        {}});
    return;
  }
  auto request = read_mcp_request(message, message_limits(context.env->bounds));
  if (!request) {
    refuse(message.id, request.error());
    return;
  }
  modern_seen = modern_seen || request->modern;
  dispatch(message, *request);
}

void mcp_session_state::dispatch(const rpc_message& message, const mcp_request& request) {
  bool handshake = message.method == "initialize" || message.method == "ping";
  if (!request.modern && modern_seen && revision.empty() && !handshake) {
    refuse(message.id, missing_protocol_version());
  } else if (context.served && dispatch_served(message, request)) {
    return;
  } else if (message.method == "tools/call") {
    call_tool(message, request);
  } else if (message.method == "resources/read") {
    read_resource(message, request);
  } else if (message.method == "resources/list") {
    list_resources(message, request);
  } else if (message.method == "prompts/get") {
    get_prompt(message, request);
  } else if (message.method == "completion/complete") {
    complete(message, request);
  } else if (dispatch_lists(message, request)) {
    return;
  } else if (request.modern) {
    dispatch_modern(message, request);
  } else {
    dispatch_legacy(message, request);
  }
}

bool mcp_session_state::dispatch_lists(const rpc_message& message, const mcp_request& request) {
  auto form = form_for(request);
  std::string result;
  if (message.method == "tools/list") {
    result = tool_list_result(tool, form);
  } else if (message.method == "resources/templates/list") {
    result = template_list_result(form);
  } else if (message.method == "prompts/list") {
    result = list_result("prompts", prompt_definition(), form);
  } else {
    return false;
  }
  if (request.find("cursor").empty()) {
    respond(message.id, result);
  } else {
    refuse(message.id, {rpc_code::invalid_params,
                        "Invalid cursor: the list has one page, ask without a cursor",
                        {}});
  }
  return true;
}

void mcp_session_state::dispatch_modern(const rpc_message& message, const mcp_request& request) {
  if (message.method == "server/discover") {
    respond(message.id, discover_result(lists));
  } else if (message.method == "subscriptions/listen") {
    listen(message, request);
  } else {
    refuse(message.id, unknown_method(message.method));
  }
}

void mcp_session_state::dispatch_legacy(const rpc_message& message, const mcp_request& request) {
  if (message.method == "initialize") {
    initialize(message, request);
  } else if (message.method == "ping") {
    respond(message.id, empty_result(form_for(request)));
  } else if (message.method == "logging/setLevel") {
    set_log_level(message, request);
  } else if (message.method == "resources/subscribe") {
    subscribe(message, request, true);
  } else if (message.method == "resources/unsubscribe") {
    subscribe(message, request, false);
  } else {
    refuse(message.id, unknown_method(message.method));
  }
}

void mcp_session_state::initialize(const rpc_message& message, const mcp_request& request) {
  auto requested = request.text("protocolVersion");
  if (!requested) {
    refuse(message.id, {rpc_code::invalid_params,
                        fmt::format("initialize: protocolVersion must be a string, e.g. \"{}\"",
                                    latest_legacy_revision),
                        {}});
    return;
  }
  ready = false;
  revision = negotiate_revision(*requested);
  client = read_client_info(request);
  context.env->log->debug("session: initialize, revision {} asked, {} spoken", *requested,
                          revision);
  abilities = read_client_abilities(request.find("capabilities"), revision);
  note_abilities(abilities);
  respond(message.id, initialize_result(revision, lists));
}

void mcp_session_state::set_log_level(const rpc_message& message, const mcp_request& request) {
  auto level = severity_from_string(request.text("level").value_or(""));
  if (!level) {
    refuse(message.id, {rpc_code::invalid_params,
                        "logging/setLevel: level must be one of debug, info, notice, warning, "
                        "error, critical, alert, emergency",
                        {}});
    return;
  }
  log_level = level;
  respond(message.id, empty_result(form_for(request)));
}

void mcp_session_state::cancel(std::string_view request) {
  if (auto subscription = subscriptions.find(request); subscription != subscriptions.end()) {
    subscriptions.erase(subscription);
    return;
  }
  if (auto read = reads.find(request); read != reads.end()) {
    reads.erase(read);
    return;
  }
  auto found = requests.find(request);
  if (found == requests.end()) {
    return;
  }
  auto run = runs.find(found->second);
  requests.erase(found);
  cancel_run(run);
}

caf::typed_response_promise<caf::ok_atom> mcp_session_state::stop() {
  auto promise = self->make_response_promise<caf::ok_atom>();
  stopping.push_back(promise);
  if (now != phase::open) {
    return promise;
  }
  now = phase::stopping;
  stop_due = self->clock().now() + stop_budget;
  for (const auto& [id, wanted] : std::exchange(subscriptions, {})) {
    respond(id, subscription_end_result(id));
  }
  requests.clear();
  reads.clear();
  kept.clear();
  for (auto run = runs.begin(); run != runs.end();) {
    cancel_run(run++);
  }
  self->delayed_send(self, stop_budget, tick_atom::value);
  end_if_idle();
  return promise;
}

void mcp_session_state::end_if_idle() {
  if (now == phase::stopping && runs.empty()) {
    end();
  }
}

void mcp_session_state::end() {
  now = phase::ended;
  for (auto& promise : std::exchange(stopping, {})) {
    promise.deliver(caf::ok_atom::value);
  }
  self->quit();
}

mcp_session_impl_actor::behavior_type mcp_session_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { lost(down); });
  if (context.configured) {
    context.configured->tell(self->address());
    self->attach_functor([configured = context.configured, address = self->address()](
                             const caf::error&) { configured->forget(address); });
    context.catalogue = [configured = context.configured] { return configured->get(); };
  }
  show_in_book();
  return {
      [this](run_progress& step) {
        if (context.book) {
          step.output ? context.book->wrote(step.run, step.message)
                      : context.book->reached(step.run, step.message);
        }
        step.output ? wrote(step.run, step.message) : progressed(step.run, step.message);
      },
      [this](client_question& question) { return ask(question); },
      [this](message_atom, const std::string& text) {
        take_message(text);
        self->send(out, credit_atom::value, std::uint64_t{text.size() + 1});
      },
      [this](message_atom, const std::string& text, trace_context& from) {
        take_message(text, std::move(from));
        self->send(out, credit_atom::value, std::uint64_t{text.size() + 1});
      },
      [this](refuse_atom, error& reason) {
        if (now == phase::open) {
          refuse({}, {rpc_code::invalid_request, std::move(reason.message), {}});
        }
      },
      [this](catalogue_atom) {
        tell_updated(std::string{capabilities_uri});
        // For clients that don't subscribe, but keep what they have read.
        tell_changed(&changing_lists::resources);
      },
      [this](stop_atom) { return stop(); },
      [this](tick_atom) { tick(); },
      [this](tick_atom, std::uint64_t question) { question_due(question); },
      [this](tick_atom, run_atom, const std::string& run) { put_to_client(run); },
      [this](tick_atom, call_atom, const std::string& run) { step_served(run); },
      [this](tick_atom, end_atom, const std::string& state) { kept.erase(state); },
      [this](cancel_atom, const std::string& run) { cancel_for_owner(run); },
  };
}

mcp_session_impl_actor::behavior_type
mcp_session(mcp_session_impl_actor::stateful_pointer<mcp_session_state> self,
            session_context context, front_end_actor out) {
  auto& state = self->state;
  state.tool = run_python_definition(*context.env->config);
  state.context = std::move(context);
  state.out = std::move(out);
  if (state.context.served) {
    state.lists.tools = true;
    state.lists.prompts = true;
  }
  return state.make_behavior();
}

} // namespace bulkhead
