#include <algorithm>
#include <string>

#include "protocol/json_text.hpp"
#include "protocol/tool_parameters.hpp"

namespace bulkhead {

namespace {

/// A JSON string is a Python string: nothing that a server calls things ends it early.
std::string docstring(const tool_document& tool, const std::vector<tool_parameter>& parameters) {
  auto text = tool.description.empty() ? tool.title : tool.description;
  if (tool.name != tool.alias) {
    text += (text.empty() ? "" : "\n\n") + std::string{"The tool "} + json_quote(tool.name) + ".";
  }
  std::string others;
  for (const auto& each : parameters) {
    if (!each.identifier) {
      others += "\n    " + json_quote(each.name) + ": " + each.type +
                (each.required ? "" : " = " + each.otherwise);
    }
  }
  if (!others.empty()) {
    text += (text.empty() ? "" : "\n\n") + std::string{"Further, by **{…}:"} + others;
  }
  return text.empty() ? std::string{} : "    " + json_quote(text) + "\n";
}

/// Keyword arguments; all whose names Python doesn't take are one.
std::string parameter_list(const std::vector<tool_parameter>& parameters) {
  std::string list;
  std::string others = "others";
  bool any_others = false;
  for (const auto& each : parameters) {
    any_others = any_others || !each.identifier;
    if (each.identifier) {
      list += (list.empty() ? "*, " : ", ") + each.name + ": " + each.type +
              (each.required ? "" : " = ...");
    }
  }
  auto is_taken = [&](const tool_parameter& each) { return each.name == others; };
  while (std::any_of(parameters.begin(), parameters.end(), is_taken)) {
    others += '_';
  }
  if (any_others) {
    list += (list.empty() ? "**" : ", **") + others + ": Any";
  }
  return list;
}

} // namespace

std::string tool_stubs(const server_documents& documents) {
  auto about = "Tools of the MCP server " + json_quote(documents.server) + ".";
  if (!documents.version.empty()) {
    about += " Version " + documents.version + ".";
  }
  if (!documents.description.empty()) {
    about += "\n\n" + documents.description;
  }
  auto out = json_quote(about) + "\nfrom typing import Any, Literal\n";
  for (const auto& tool : documents.tools) {
    auto parameters = tool_parameters(tool);
    auto list = parameter_list(parameters);
    out += "\ndef " + tool.alias + "(" + list + ") -> Any:\n" + docstring(tool, parameters) +
           "    ...\n";
  }
  return out;
}

} // namespace bulkhead
