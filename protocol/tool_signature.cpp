#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"
#include "protocol/server_config.hpp"
#include "protocol/tool_parameters.hpp"

namespace bulkhead {

namespace {

using json = nlohmann::ordered_json;

constexpr int deepest_type = 3;
constexpr std::size_t most_alternatives = 8;
constexpr std::size_t longest_default = 40;
constexpr std::size_t most_parameters = 64;

/// A schema's member of the given type; null if there is none.
const json* member(const json& schema, const char* key, json::value_t type) {
  if (!schema.is_object()) {
    return nullptr;
  }
  auto found = schema.find(key);
  return found != schema.end() && found->type() == type ? &*found : nullptr;
}

/// A scalar as Python writes it; `...` for anything long or structured.
std::string python_literal(const json& value) {
  if (value.is_null()) {
    return "None";
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? "True" : "False";
  }
  if (value.is_structured() && !value.empty()) {
    return "...";
  }
  auto text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= longest_default ? text : "...";
}

class type_writer {
public:
  explicit type_writer(const json& root) : root_(root) {}

  std::string type_of(const json& schema, int depth) const {
    if (depth > deepest_type || !schema.is_object()) {
      return "Any";
    }
    if (const auto* reference = member(schema, "$ref", json::value_t::string)) {
      const auto* target = resolve(reference->get_ref<const std::string&>());
      return target != nullptr ? type_of(*target, depth + 1) : "Any";
    }
    if (const auto* values = member(schema, "enum", json::value_t::array)) {
      return literal(*values);
    }
    if (auto constant = schema.find("const"); constant != schema.end()) {
      return literal(json::array({*constant}));
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      if (const auto* choices = member(schema, key, json::value_t::array)) {
        return join(*choices, [&](const json& choice) { return type_of(choice, depth + 1); });
      }
    }
    if (const auto* types = member(schema, "type", json::value_t::array)) {
      return join(*types, [&](const json& type) { return named_type(type, schema, depth); });
    }
    auto type = schema.find("type");
    return type != schema.end() ? named_type(*type, schema, depth) : "Any";
  }

private:
  std::string named_type(const json& type, const json& schema, int depth) const {
    if (type == "string") {
      return "str";
    }
    if (type == "integer") {
      return "int";
    }
    if (type == "number") {
      return "float";
    }
    if (type == "boolean") {
      return "bool";
    }
    if (type == "null") {
      return "None";
    }
    if (type == "object") {
      return "dict";
    }
    if (type == "array") {
      const auto* items = member(schema, "items", json::value_t::object);
      return items != nullptr ? "list[" + type_of(*items, depth + 1) + "]" : "list";
    }
    return "Any";
  }

  static std::string literal(const json& values) {
    std::string result;
    for (const auto& value : values) {
      auto text = python_literal(value);
      if (text == "..." || values.size() > most_alternatives) {
        return values.front().is_string() ? "str" : "Any";
      }
      result += (result.empty() ? "Literal[" : ", ") + text;
    }
    return result.empty() ? "Any" : result + "]";
  }

  /// The different names that `name_of` gives the parts, joined by `|`.
  template <class NameOf>
  static std::string join(const json& parts, NameOf name_of) {
    std::vector<std::string> names;
    for (const auto& part : parts) {
      auto name = name_of(part);
      if (name == "Any" || names.size() == most_alternatives) {
        return "Any";
      }
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
    std::string result;
    for (const auto& name : names) {
      result += (result.empty() ? "" : " | ") + name;
    }
    return result.empty() ? "Any" : result;
  }

  /// The target of a reference within the schema: `#/$defs/x`.
  const json* resolve(const std::string& reference) const {
    for (const char* key : {"$defs", "definitions"}) {
      auto prefix = std::string("#/") + key + '/';
      const auto* definitions = member(root_, key, json::value_t::object);
      if (definitions != nullptr && reference.starts_with(prefix)) {
        auto found = definitions->find(reference.substr(prefix.size()));
        return found != definitions->end() ? &*found : nullptr;
      }
    }
    return nullptr;
  }

  const json& root_;
};

std::string shown(const tool_parameter& each) {
  auto result = (each.identifier ? each.name : json_quote(each.name)) + ": " + each.type;
  if (!each.required) {
    result += " = " + each.otherwise;
  }
  // Code passes a name that is no identifier as **{"name": value}.
  return each.identifier ? result : "**{" + result + "}";
}

} // namespace

std::vector<tool_parameter> tool_parameters(const tool_document& tool) {
  auto schema = json::parse(tool.input_schema, nullptr, false);
  type_writer types(schema);
  std::vector<tool_parameter> all;
  if (const auto* properties = member(schema, "properties", json::value_t::object)) {
    const auto* names = member(schema, "required", json::value_t::array);
    for (const auto& [name, property] : properties->items()) {
      bool needed =
          names != nullptr && std::find(names->begin(), names->end(), name) != names->end();
      auto given = property.is_object() ? property.find("default") : property.end();
      all.push_back(
          {name, types.type_of(property, 0),
           property.is_object() && given != property.end() ? python_literal(*given) : "None",
           needed, python_identifier(name) == name});
    }
  }
  std::stable_partition(all.begin(), all.end(), [](const auto& each) { return each.required; });
  // What is no identifier can only stand last.
  std::stable_partition(all.begin(), all.end(), [](const auto& each) { return each.identifier; });
  return all;
}

std::string tool_signature(const tool_document& tool) {
  auto parameters = tool_parameters(tool);
  bool cut = parameters.size() > most_parameters;
  parameters.resize(std::min(parameters.size(), most_parameters));
  std::string result;
  for (const auto& each : parameters) {
    result += (result.empty() ? "" : ", ") + shown(each);
  }
  return tool.alias + '(' + result + (cut ? ", …)" : ")");
}

} // namespace bulkhead
