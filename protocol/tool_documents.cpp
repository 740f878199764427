#include "protocol/tool_documents.hpp"

#include <algorithm>
#include <numeric>
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

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

/// Levenshtein's distance in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
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
    if (tool.is_object() && is_usable_name(text_member(tool, "name")) && !needs_tasks(tool)) {
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

std::vector<std::string> similar_names(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  constexpr std::size_t most = 3;
  if (name.empty() || name.size() > longest_tool_name) {
    return {};
  }
  auto wanted = lower(name);
  auto tolerance = std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> close;
  for (const auto& candidate : candidates) {
    auto other = lower(candidate);
    bool part = wanted.size() >= 3 && other.find(wanted) != std::string::npos;
    auto difference = std::max(other.size(), wanted.size()) - std::min(other.size(), wanted.size());
    if (other.size() > longest_tool_name || (!part && difference > tolerance)) {
      continue;
    }
    auto distance = edit_distance(wanted, other);
    if (part || distance <= tolerance) {
      // A name that holds the whole of what was asked is near, however much longer it is.
      close.emplace_back(part ? std::min(distance, tolerance) : distance, candidate);
    }
  }
  std::sort(close.begin(), close.end());
  close.erase(std::unique(close.begin(), close.end()), close.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(most, close.size()); ++i) {
    result.emplace_back(close[i].second);
  }
  return result;
}

} // namespace bulkhead
