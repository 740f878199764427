#include "protocol/tool_documents.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

/// Keeps the order of members: that of a schema's properties is the author's order of parameters.
using json = nlohmann::ordered_json;

std::string compact(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_member(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string object_member(const json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_object() ? compact(*found) : std::string();
}

bool is_usable_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_tool_name &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// MCP 2025-11-25, tools: a tool may demand to be called as a task, which needs a client that
/// supports tasks.
bool needs_tasks(const json& tool) {
  auto execution = tool.find("execution");
  return execution != tool.end() && execution->is_object() &&
         text_member(*execution, "taskSupport") == "required";
}

tool_document read_tool(const json& tool) {
  tool_document result;
  result.name = text_member(tool, "name");
  result.title = text_member(tool, "title");
  result.description = text_member(tool, "description");
  if (auto schema = object_member(tool, "inputSchema"); !schema.empty()) {
    result.input_schema = std::move(schema);
  }
  result.output_schema = object_member(tool, "outputSchema");
  result.annotations = object_member(tool, "annotations");
  if (auto annotations = tool.find("annotations");
      result.title.empty() && annotations != tool.end() && annotations->is_object()) {
    result.title = text_member(*annotations, "title");
  }
  return result;
}

} // namespace

expected<tool_page> parse_tool_page(std::string_view result) {
  auto document = json::parse(result, nullptr, false);
  auto tools = document.is_object() ? document.find("tools") : document.end();
  if (tools == document.end() || !tools->is_array()) {
    return fail(errc::malformed, "the server's tools/list result has no \"tools\" array");
  }
  tool_page page;
  for (const auto& tool : *tools) {
    if (!tool.is_object() || !is_usable_name(text_member(tool, "name"))) {
      continue;
    }
    if (needs_tasks(tool)) {
      ++page.hidden;
    } else {
      page.tools.push_back(read_tool(tool));
    }
  }
  auto cursor = document.find("nextCursor");
  if (cursor != document.end() && !cursor->is_string() && !cursor->is_null()) {
    return fail(errc::malformed,
                "the server's tools/list result has a nextCursor that is no string");
  }
  page.next_cursor = text_member(document, "nextCursor");
  return page;
}

void assign_tool_aliases(std::vector<tool_document>& tools) {
  std::vector<std::string> names;
  names.reserve(tools.size());
  for (const auto& tool : tools) {
    names.push_back(tool.name);
  }
  auto aliases = python_aliases(names);
  for (std::size_t i = 0; i < tools.size(); ++i) {
    tools[i].alias = std::move(aliases[i]);
  }
}

const tool_document* find_tool(const std::vector<tool_document>& tools, std::string_view name) {
  auto by = [&](auto member) {
    return std::find_if(tools.begin(), tools.end(),
                        [&](const tool_document& tool) { return tool.*member == name; });
  };
  auto found = by(&tool_document::name);
  if (found == tools.end()) {
    found = by(&tool_document::alias);
  }
  return found != tools.end() ? &*found : nullptr;
}

} // namespace bulkhead
