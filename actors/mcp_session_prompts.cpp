// The prompt, and completion of its arguments and of the templates' variables.

#include "actors/mcp_session.hpp"

#include <utility>

#include <caf/all.hpp>

#include "protocol/json_rpc.hpp"

namespace bulkhead {

namespace {

/// Nobody waits longer for a suggestion.
constexpr std::chrono::seconds suggestion_patience{5};

} // namespace

void mcp_session_state::get_prompt(const rpc_message& message, const mcp_request& request) {
  auto result = prompt_result(request, *context.catalogue(), form_for(request));
  result ? respond(message.id, *result) : refuse(message.id, result.error());
}

void mcp_session_state::complete(const rpc_message& message, const mcp_request& request) {
  using what = completion_request::what;
  auto asked = read_completion(request);
  auto form = form_for(request);
  if (!asked) {
    refuse(message.id, asked.error());
    return;
  }
  std::vector<std::string> values;
  if (asked->of == what::handle || asked->of == what::artifact) {
    if (context.store) {
      complete_resource(message, std::move(*asked), form);
      return;
    }
  } else if (asked->of == what::server) {
    values = completed_servers(*context.catalogue());
  } else if (asked->of == what::stream) {
    values = {"stdout", "stderr"};
  }
  respond(message.id, completion_result(*asked, values, form));
}

/// From the latest things that runs left; a store that is busy suggests nothing.
void mcp_session_state::complete_resource(const rpc_message& message, completion_request asked,
                                          answer_form form) {
  if (!begin_read(message)) {
    return;
  }
  auto reply = [this, id = message.id, asked = std::move(asked),
                form](const std::vector<resource_entry>& entries) {
    if (end_read(id)) {
      respond(id, completion_result(asked, completed_resources(asked, entries), form));
    }
  };
  self->request(context.store(), suggestion_patience, list_atom::value, context.owner,
                std::string{})
      .then([reply](const resource_page& page) { reply(page.entries); },
            [reply](const caf::error&) { reply({}); });
}

} // namespace bulkhead
