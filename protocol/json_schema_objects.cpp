// Keywords for objects.
#include "protocol/json_schema_checker.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bulkhead::schema {

namespace {

/// Is the member told of by `properties` or `patternProperties` beside?
bool is_known(checker& c, const frame& f, const std::string& name) {
  auto named = f.schema.find("properties");
  if (named != f.schema.end() && named->is_object() && named->contains(name)) {
    return true;
  }
  auto patterns = f.schema.find("patternProperties");
  if (patterns == f.schema.end() || !patterns->is_object()) {
    return false;
  }
  // A pattern that can't be matched may mean any name.
  const auto all = patterns->items();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& each) { return matches(c, each.key(), name); });
}

std::vector<std::string_view> names_of(const json& schema) {
  std::vector<std::string_view> names;
  auto properties = schema.find("properties");
  if (properties != schema.end() && properties->is_object()) {
    for (const auto& each : properties->get_ref<const json::object_t&>()) {
      names.emplace_back(each.first);
    }
  }
  return names;
}

bool complain_of_name(checker& c, const frame& f, const std::string& name) {
  if (c.is_silent()) {
    return false;
  }
  auto known = names_of(f.schema);
  auto hint = guess(name, known);
  if (hint.empty() && !known.empty()) {
    bool more = known.size() > most_names;
    std::vector<std::string> shown;
    for (const auto& each : known) {
      if (shown.size() < most_names) {
        shown.push_back(shown_name(each));
      }
    }
    hint = fmt::format("; expected are {}{}", fmt::join(shown, ", "), more ? ", …" : "");
  }
  return c.complain(fmt::format("there is no {}{}", shown_name(name), hint));
}

bool require(checker& c, const frame& f, const json& names, std::string_view why) {
  bool fits = true;
  for (const auto& name : names) {
    if (!c.spend(1) || !name.is_string() || f.value.contains(name.get_ref<const std::string&>())) {
      continue;
    }
    fits = c.complain(fmt::format("{} is missing{}", shown_value(name), why));
  }
  return fits;
}

} // namespace

bool check_properties(checker& c, const frame& f) {
  if (!f.value.is_object() || !f.argument.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& [name, value] : f.value.items()) {
    auto schema = f.argument.find(name);
    if (schema != f.argument.end()) {
      fits = c.apply_to_member(*schema, name, value) && fits;
      f.note_member(name);
    }
  }
  return fits;
}

bool check_pattern_properties(checker& c, const frame& f) {
  if (!f.value.is_object() || !f.argument.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& [pattern, schema] : f.argument.items()) {
    if (c.of().patterns.at(pattern) == nullptr) {
      continue;
    }
    for (const auto& [name, value] : f.value.items()) {
      if (!c.has_stopped() && matches(c, pattern, name)) {
        fits = c.apply_to_member(schema, name, value) && fits;
        f.note_member(name);
      }
    }
  }
  return fits;
}

bool check_additional_properties(checker& c, const frame& f) {
  if (!f.value.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& [name, value] : f.value.items()) {
    if (c.has_stopped() || is_known(c, f, name)) {
      continue;
    }
    f.note_member(name);
    fits = (f.argument == false ? complain_of_name(c, f, name)
                                : c.apply_to_member(f.argument, name, value)) &&
           fits;
  }
  return fits;
}

bool check_property_names(checker& c, const frame& f) {
  if (!f.value.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& each : f.value.items()) {
    fits = c.apply_to_member(f.argument, each.key(), json(each.key())) && fits;
  }
  return fits;
}

bool check_required(checker& c, const frame& f) {
  return !f.value.is_object() || !f.argument.is_array() || require(c, f, f.argument, "");
}

bool check_dependent(checker& c, const frame& f) {
  if (!f.value.is_object() || !f.argument.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& [name, what] : f.argument.items()) {
    if (f.value.contains(name)) {
      fits =
          (what.is_array() ? require(c, f, what, fmt::format(", which {} needs", shown_name(name)))
                           : c.apply(what, f.value, f.seen)) &&
          fits;
    }
  }
  return fits;
}

bool check_max_properties(checker& c, const frame& f) {
  return !f.value.is_object() || check_size(c, f, f.value.size(), "at most", "members", no_more);
}
bool check_min_properties(checker& c, const frame& f) {
  return !f.value.is_object() || check_size(c, f, f.value.size(), "at least", "members", no_less);
}

bool check_unevaluated_properties(checker& c, const frame& f) {
  if (!f.value.is_object()) {
    return true;
  }
  bool fits = true;
  for (const auto& [name, value] : f.value.items()) {
    if (!f.seen->members.contains(name)) {
      fits = (f.argument == false ? complain_of_name(c, f, name)
                                  : c.apply_to_member(f.argument, name, value)) &&
             fits;
      f.note_member(name);
    }
  }
  return fits;
}

} // namespace bulkhead::schema
