// For tests only, so that it stands in no help: the protocol's conformance suite starts this with
// the URL of a scenario's server, which is then driven by the client that all servers are.

#include <algorithm>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/errors.hpp"
#include "actors/mcp_http_link.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/conformance_login.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

constexpr auto patience = 20s;
constexpr int most_logins = 3;

/// A value as a schema wants it: its default, else anything of its type.
json value_for(const json& schema) {
  if (schema.contains("default")) {
    return schema["default"];
  }
  auto type = schema.contains("type") && schema["type"].is_string()
                  ? schema["type"].get<std::string>()
                  : std::string{};
  if (type == "number" || type == "integer") {
    return 5;
  }
  if (type == "boolean") {
    return true;
  }
  if (type == "array") {
    return json::array();
  }
  return type == "object" ? json::object() : json("text");
}

/// An object with the properties of a schema: all of them, or those that it can't do without.
json object_for(const json& schema, bool all) {
  auto result = json::object();
  auto required = schema.value("required", json::array());
  auto properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) {
    if (all || std::find(required.begin(), required.end(), json(name)) != required.end()) {
      result[name] = value_for(property);
    }
  }
  return result;
}

/// Somebody who agrees to everything.
std::string answer_to(const server_question& question) {
  if (question.method == "elicitation/create") {
    auto params = json::parse(question.params, nullptr, false);
    auto schema = params.is_object() ? params.value("requestedSchema", json::object()) : json{};
    return json{{"action", "accept"}, {"content", object_for(schema, true)}}.dump();
  }
  return R"({"role":"assistant","content":{"type":"text","text":"yes"},"model":"none"})";
}

tool_caller_actor::behavior_type agreeable_caller(tool_caller_actor::pointer) {
  return {
      [](const tool_progress&) {},
      [](const server_question& question) { return answer_to(question); },
  };
}

struct planned_call {
  std::string tool;
  json arguments;
};

/// What a scenario wants to be called: what it says, the schema of another tool, or every tool.
std::vector<planned_call> plan(const server_documents& documents, const json& context) {
  std::vector<planned_call> result;
  if (context.is_object() && context.contains("toolCalls")) {
    for (const auto& call : context["toolCalls"]) {
      result.push_back({call.at("name"), call.at("arguments")});
    }
    return result;
  }
  constexpr std::string_view echo = "json_schema_echo";
  for (const auto& tool : documents.tools) {
    if (tool.name == echo) {
      continue;
    }
    auto schema = json::parse(tool.input_schema, nullptr, false);
    result.push_back(find_tool(documents.tools, echo) != nullptr
                         ? planned_call{std::string{echo}, {{"schema", schema}}}
                         : planned_call{tool.name, object_for(schema, false)});
  }
  return result;
}

/// Lists the tools and makes the planned calls, all at once. Errors: that of the list, or of a call
/// that wasn't let in; how a call else ends is for the scenario to judge.
expected<void> drive(application& app, const mcp_client_actor& client, const json& context) {
  caf::scoped_actor self{app.system()};
  auto due = [] { return deadline::at(std::chrono::steady_clock::now() + patience); };
  expected<documents_ptr> documents;
  self->request(client, patience + 1s, documents_atom::value, due())
      .receive([&](documents_ptr& listed) { documents = std::move(listed); },
               [&](const caf::error& reason) {
                 documents = tl::unexpected{from_caf(reason, "list tools")};
               });
  if (!documents) {
    return tl::unexpected{documents.error()};
  }
  tool_caller_actor caller = app.system().spawn(agreeable_caller);
  expected<void> result;
  std::vector<std::function<void()>> answers;
  for (auto& each : plan(**documents, context)) {
    auto pending = self->request(
        client, patience + 1s, call_atom::value,
        tool_call{app.env()->next_serial(), each.tool, each.arguments.dump(), due(), {}, caller});
    answers.emplace_back([&result, pending = std::move(pending)]() mutable {
      pending.receive([](const std::string&) {},
                      [&](const caf::error& reason) {
                        auto refused = from_caf(reason, "call a tool");
                        if (result && refused.code == errc::denied) {
                          result = tl::unexpected{std::move(refused)};
                        }
                      });
    });
  }
  for (auto& answer : answers) {
    answer();
  }
  self->send_exit(caller, caf::exit_reason::kill);
  return result;
}

} // namespace

int drive_conformance(application& app, stop_signal& stop, const command_line& line) {
  auto text = environment_variable("MCP_CONFORMANCE_CONTEXT").value_or("");
  auto context = json::parse(text, nullptr, false);
  server_entry entry;
  entry.name = "conformance";
  entry.alias = "conformance";
  entry.source = "the command line";
  entry.url = line.server;
  entry.transport = server_transport::http;
  client_abilities abilities;
  abilities.elicitation_form = abilities.sampling = true;
  app.env()->client->set(abilities);
  mcp_http_services web{[&app] { return app.services().http; },
                        [&app] { return app.services().credentials; }};
  mcp_client_actor client = app.system().spawn(mcp_http_client, app.env(), web, entry);
  auto outcome = drive(app, client, context);
  for (int logins = 0; !outcome && outcome.error().code == errc::denied && logins < most_logins;
       ++logins) {
    auto let_in = conformance_log_in(app, stop, line.server, text);
    outcome = let_in ? drive(app, client, context) : let_in;
  }
  caf::scoped_actor self{app.system()};
  self->request(client, patience, stop_atom::value)
      .receive([](caf::ok_atom) {}, [](const caf::error&) {});
  if (!outcome) {
    complain(outcome.error().message);
  }
  return outcome ? 0 : 1;
}

} // namespace bulkhead
