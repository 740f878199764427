#include "protocol/mcp_prompts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/policy.hpp"
#include "protocol/resource_uri.hpp"

namespace bulkhead {

namespace {

/// "The array must not exceed 100 items."
constexpr std::size_t most_values = 100;
/// Servers that the prompt names.
constexpr std::size_t most_named = 20;

tl::unexpected<rpc_refusal> refuse(std::string message) {
  return tl::unexpected<rpc_refusal>({rpc_code::invalid_params, std::move(message), {}});
}

std::string shown(std::string_view name) {
  return std::string{name.substr(0, 100)};
}

tl::unexpected<rpc_refusal> unknown_prompt(std::string_view name) {
  return refuse(fmt::format("Unknown prompt: {}; there is only {}", shown(name), prompt_name));
}

std::string prompt_text(std::string_view task, std::string_view server,
                        const server_catalogue& catalogue) {
  auto names = completed_servers(catalogue);
  auto more = names.size() > most_named ? names.size() - most_named : 0;
  names.resize(names.size() - more);
  auto listed = names.empty() ? std::string{"none"} : fmt::format("{}", fmt::join(names, ", "));
  return fmt::format(
      "Use the tool run_python for this: {}\n\n"
      "Its code runs in a locked-down container and can call MCP servers that you name in its "
      "argument `servers`{} (configured: {}{}). In the code, `from mcp import runtime` and `print("
      "await runtime.search_tool_docs(\"what I need\"))` finds tools; call them as `await "
      "mcp_<alias>.<tool>(...)`. The resource bulkhead://capabilities tells all that there is.\n"
      "Do several calls and the filtering of their results in one run, and print only what is "
      "needed for the answer.",
      task.empty() ? std::string_view{"what I ask for next"} : task,
      server.empty() ? std::string{} : fmt::format("; use {} here", server), listed,
      more == 0 ? std::string{} : fmt::format(" and {} more", more));
}

/// What an argument of a template stands for; nothing for one that it doesn't have.
tl::expected<completion_request, rpc_refusal> of_template(std::string_view uri,
                                                          std::string_view argument) {
  using what = completion_request::what;
  completion_request result;
  result.outputs = uri == output_template;
  if (!result.outputs && uri != artifact_template) {
    return refuse(fmt::format("completion/complete: there is no resource template {}", shown(uri)));
  }
  if (argument == "handle") {
    result.of = what::handle;
  } else if (argument == (result.outputs ? "stream" : "name")) {
    result.of = result.outputs ? what::stream : what::artifact;
  } else if (argument != "offset" && argument != "length") {
    return refuse(fmt::format("completion/complete: {} has no variable {}", uri, shown(argument)));
  }
  return result;
}

tl::expected<completion_request, rpc_refusal> of_prompt(std::string_view name,
                                                        std::string_view argument) {
  if (name != prompt_name) {
    return unknown_prompt(name);
  }
  completion_request result;
  if (argument == "server") {
    result.of = completion_request::what::server;
  } else if (argument != "task") {
    return refuse(fmt::format("completion/complete: the prompt has no argument {}; it has task and "
                              "server",
                              shown(argument)));
  }
  return result;
}

} // namespace

std::string prompt_definition() {
  return fmt::format(R"({{"name":"{}","title":"Use MCP servers from Python",)"
                     R"("description":"Has a task done by code that calls MCP servers.",)"
                     R"("arguments":[{{"name":"task","description":"What is to be done",)"
                     R"("required":false}},{{"name":"server",)"
                     R"("description":"An MCP server to use for it","required":false}}]}})",
                     prompt_name);
}

tl::expected<std::string, rpc_refusal> prompt_result(const mcp_request& request,
                                                     const server_catalogue& catalogue,
                                                     const answer_form& form) {
  auto name = request.text("name");
  if (!name) {
    return refuse("prompts/get: name must be a string");
  }
  if (*name != prompt_name) {
    return unknown_prompt(*name);
  }
  auto text = request.find("arguments");
  if (!text.empty() && !is_json_object(text)) {
    return refuse("prompts/get: arguments must be an object");
  }
  auto arguments = outline_of_part(text);
  for (const auto& member : arguments.members) {
    if (!is_json_string(member.value)) {
      return refuse(
          fmt::format("prompts/get: the argument {} must be a string", shown(member.key)));
    }
  }
  auto message = prompt_text(decode_json_string(arguments.find("task")),
                             decode_json_string(arguments.find("server")), catalogue);
  return plain_result(
      fmt::format(R"("description":"How to use Bulkhead","messages":[{{"role":"user",)"
                  R"("content":{{"type":"text","text":{}}}}}])",
                  json_quote(message)),
      form);
}

tl::expected<completion_request, rpc_refusal> read_completion(const mcp_request& request) {
  auto reference = outline_of_part(request.find("ref"));
  auto argument = outline_of_part(request.find("argument"));
  auto name = argument.find("name");
  auto value = argument.find("value");
  if (!is_json_string(name) || !is_json_string(value)) {
    return refuse("completion/complete: argument must have a name and a value, both strings");
  }
  auto type = decode_json_string(reference.find("type"));
  auto result =
      type == "ref/prompt"
          ? of_prompt(decode_json_string(reference.find("name")), decode_json_string(name))
      : type == "ref/resource"
          ? of_template(decode_json_string(reference.find("uri")), decode_json_string(name))
          : refuse("completion/complete: ref must be of type ref/prompt or ref/resource");
  if (result) {
    result->begun = decode_json_string(value);
    auto context = outline_of_part(outline_of_part(request.find("context")).find("arguments"));
    result->handle = decode_json_string(context.find("handle"));
  }
  return result;
}

std::vector<std::string> completed_servers(const server_catalogue& catalogue) {
  std::vector<std::string> names;
  for (const auto& entry : catalogue.servers) {
    if (allows_server(catalogue.rules, entry.name).allowed) {
      names.push_back(entry.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> completed_resources(const completion_request& asked,
                                             const std::vector<resource_entry>& entries) {
  std::vector<std::string> values;
  for (const auto& entry : entries) {
    auto uri = parse_resource_uri(entry.uri);
    if (!uri || uri->stream.has_value() != asked.outputs) {
      continue;
    }
    if (asked.of == completion_request::what::handle) {
      values.push_back(uri->handle);
    } else if (asked.handle.empty() || uri->handle == asked.handle) {
      values.push_back(uri->artifact);
    }
  }
  // The latest come first; a run may have left several.
  std::vector<std::string> once;
  for (auto& value : values) {
    if (std::find(once.begin(), once.end(), value) == once.end()) {
      once.push_back(std::move(value));
    }
  }
  return once;
}

std::string completion_result(const completion_request& asked,
                              const std::vector<std::string>& values, const answer_form& form) {
  auto begun = lower_case(asked.begun);
  std::string shown;
  std::size_t count = 0;
  for (const auto& value : values) {
    if (lower_case(value).starts_with(begun) && ++count <= most_values) {
      shown += shown.empty() ? "" : ",";
      append_json_string(shown, value);
    }
  }
  return plain_result(fmt::format(R"("completion":{{"values":[{}],"total":{},"hasMore":{}}})",
                                  shown, count, count > most_values),
                      form);
}

} // namespace bulkhead
