#include "protocol/json_schema_checker.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "protocol/printable.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead::schema {

namespace {

constexpr std::size_t most_complaints = 3;
constexpr std::size_t longest_shown = 60;

struct keyword {
  std::string_view name;
  bool (*apply)(checker&, const frame&);
  bool is_new = false; ///< unknown to draft 7
};

/// In the order in which they are looked at: what others depend on comes first.
const std::vector<keyword>& keywords() {
  static const std::vector<keyword> all = {
      {"type", check_type},
      {"enum", check_enum},
      {"const", check_const},
      {"required", check_required},
      {"maximum", check_maximum},
      {"minimum", check_minimum},
      {"exclusiveMaximum", check_exclusive_maximum},
      {"exclusiveMinimum", check_exclusive_minimum},
      {"multipleOf", check_multiple_of},
      {"maxLength", check_max_length},
      {"minLength", check_min_length},
      {"pattern", check_pattern},
      {"maxItems", check_max_items},
      {"minItems", check_min_items},
      {"uniqueItems", check_unique_items},
      {"maxProperties", check_max_properties},
      {"minProperties", check_min_properties},
      {"prefixItems", check_prefix_items, true},
      {"items", check_items},
      {"additionalItems", check_additional_items},
      {"contains", check_contains},
      {"properties", check_properties},
      {"patternProperties", check_pattern_properties},
      {"additionalProperties", check_additional_properties},
      {"propertyNames", check_property_names},
      {"dependencies", check_dependent},
      {"dependentRequired", check_dependent, true},
      {"dependentSchemas", check_dependent, true},
      {"$ref", check_ref},
      {"$dynamicRef", check_dynamic_ref, true},
      {"allOf", check_all_of},
      {"anyOf", check_any_of},
      {"oneOf", check_one_of},
      {"not", check_not},
      {"if", check_if},
      {"unevaluatedItems", check_unevaluated_items, true},
      {"unevaluatedProperties", check_unevaluated_properties, true},
  };
  return all;
}

/// A value's text, or a little more of its beginning than is shown: values may be huge.
void append_beginning(std::string& out, const json& value) {
  if (value.is_string()) {
    auto text = std::string_view{value.get_ref<const std::string&>()};
    bool cut = text.size() > longest_shown;
    out += json(cut ? trim_split_end(text.substr(0, longest_shown)) : text)
               .dump(-1, ' ', false, json::error_handler_t::replace);
    out += cut ? "…" : "";
    return;
  }
  if (!value.is_structured()) {
    out += value.dump();
    return;
  }
  bool is_object = value.is_object();
  out += is_object ? '{' : '[';
  bool first = true;
  for (const auto& [key, each] : value.items()) {
    if (out.size() > longest_shown) {
      return;
    }
    out += std::exchange(first, false) ? "" : ",";
    if (is_object) {
      append_beginning(out, json(key));
      out += ':';
    }
    append_beginning(out, each);
  }
  out += is_object ? '}' : ']';
}

} // namespace

std::string shown_value(const json& value) {
  std::string out;
  append_beginning(out, value);
  return printable(shortened(std::move(out), longest_shown));
}

std::string shown_name(std::string_view name) {
  return shown_value(json(name));
}

std::string_view type_name(const json& value) {
  switch (value.type()) {
  case json::value_t::null:
    return "null";
  case json::value_t::boolean:
    return "boolean";
  case json::value_t::object:
    return "object";
  case json::value_t::array:
    return "array";
  case json::value_t::string:
    return "string";
  case json::value_t::number_integer:
  case json::value_t::number_unsigned:
    return "integer";
  default:
    return "number";
  }
}

std::string guess(std::string_view name, const std::vector<std::string_view>& known) {
  auto similar = similar_names(name, known);
  return similar.empty() ? "" : fmt::format("; did you mean {}?", shown_name(similar.front()));
}

schema_verdict checker::run(const json& value) {
  bool fits = apply(of_.document, value, nullptr);
  if (has_stopped()) {
    return {schema_verdict::kind::unchecked, stopped_};
  }
  if (fits) {
    return {};
  }
  return {schema_verdict::kind::misfits, fmt::format("{}", fmt::join(complaints_, "; "))};
}

bool checker::stop(std::string why) {
  if (stopped_.empty()) {
    stopped_ = std::move(why);
  }
  return true;
}

bool checker::spend(std::size_t steps) {
  if (steps > bounds_.steps - std::min(spent_, bounds_.steps)) {
    stop("checking takes too many steps");
    return false;
  }
  spent_ += steps;
  return true;
}

bool checker::complain(const std::string& what) {
  if (silent_ == 0 && complaints_.size() < most_complaints) {
    complaints_.push_back(where() + what);
  }
  return false;
}

std::string checker::where() const {
  std::string path;
  for (const auto& [key, index] : path_) {
    bool plain =
        !key.empty() && key.size() <= longest_shown &&
        std::all_of(key.begin(), key.end(), [](char c) {
          return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        });
    path += key.data() == nullptr ? fmt::format("[{}]", index)
            : plain               ? (path.empty() ? "" : ".") + std::string{key}
                                  : fmt::format("[{}]", shown_name(key));
  }
  return path.empty() ? path : path + ": ";
}

bool checker::apply(const json& schema, const json& value, seen_parts* seen) {
  if (!stopped_.empty() || !spend(1)) {
    return true;
  }
  if (schema.is_boolean()) {
    return schema.get<bool>() || complain("nothing is allowed here");
  }
  if (depth_ >= bounds_.depth) {
    return stop("the schema leads back to itself, or is nested too deep");
  }
  auto home = of_.resource_of.find(&schema);
  if (home == of_.resource_of.end()) {
    // The keyword's value has a wrong type.
    return true;
  }
  const auto* resource = home->second;
  bool enters = scope_.empty() || scope_.back() != resource;
  if (enters) {
    scope_.push_back(resource);
  }
  ++depth_;
  seen_parts own;
  bool fits = apply_keywords(schema, value, own);
  --depth_;
  if (enters) {
    scope_.pop_back();
  }
  if (fits && seen != nullptr) {
    seen->add(own);
  }
  return fits;
}

bool checker::apply_keywords(const json& schema, const json& value, seen_parts& own) {
  auto* seen = of_.asks_for_unevaluated ? &own : nullptr;
  if (auto found = schema.find("$ref"); is_old() && found != schema.end()) {
    return check_ref(*this, {schema, *found, value, seen});
  }
  bool fits = true;
  for (const auto& each : keywords()) {
    auto found = each.is_new && is_old() ? schema.end() : schema.find(each.name);
    if (found != schema.end()) {
      fits = each.apply(*this, {schema, *found, value, seen}) && fits;
      if (!stopped_.empty() || (!fits && silent_ > 0)) {
        return fits;
      }
    }
  }
  return fits;
}

bool checker::would_fit(const json& schema, const json& value, seen_parts* seen) {
  ++silent_;
  bool fits = apply(schema, value, seen);
  --silent_;
  return fits;
}

bool checker::apply_to_member(const json& schema, std::string_view name, const json& value) {
  path_.emplace_back(name, 0);
  bool fits = apply(schema, value, nullptr);
  path_.pop_back();
  return fits;
}

bool checker::apply_to_item(const json& schema, std::size_t index, const json& value) {
  path_.emplace_back(std::string_view{}, index);
  bool fits = apply(schema, value, nullptr);
  path_.pop_back();
  return fits;
}

} // namespace bulkhead::schema

namespace bulkhead {

schema_verdict check_value(const json_schema::parts& schema, const nlohmann::json& value,
                           const schema_bounds& bounds) {
  return schema::checker{schema, bounds}.run(value);
}

} // namespace bulkhead
