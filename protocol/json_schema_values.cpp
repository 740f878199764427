// Keywords for values of any type, and schemas made of schemas.
#include "protocol/json_schema_checker.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bulkhead::schema {

namespace {

bool is_whole(const json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
}

bool has_type(const json& value, const std::string& type) {
  return type == "integer"  ? is_whole(value)
         : type == "number" ? value.is_number()
                            : type_name(value) == type;
}

std::string got(const frame& f) {
  return f.value.is_null() ? "null"
                           : fmt::format("the {} {}", type_name(f.value), shown_value(f.value));
}

/// What to say of a value that fits no alternative: what is wrong with it by the only one of its
/// type, if there is such a one.
bool complain_of_all(checker& c, const frame& f) {
  if (c.is_silent()) {
    return false;
  }
  const json* likely = nullptr;
  std::size_t count = 0;
  std::vector<std::string> types;
  for (const auto& each : f.argument) {
    auto type = each.is_object() ? each.find("type") : each.end();
    bool told = each.is_object() && type != each.end() && type->is_string();
    if (told) {
      types.push_back(type->get<std::string>());
    }
    if (!told || has_type(f.value, types.back())) {
      likely = &each;
      ++count;
    }
  }
  if (count == 1) {
    return c.apply(*likely, f.value, nullptr);
  }
  return count == 0
             ? c.complain(fmt::format("expected {}, got {}", fmt::join(types, " or "), got(f)))
             : c.complain(
                   fmt::format("fits none of {} alternatives: {}", f.argument.size(), got(f)));
}

} // namespace

bool check_ref(checker& c, const frame& f) {
  auto target = c.of().references.find(&f.schema);
  return target == c.of().references.end() || c.apply(*target->second, f.value, f.seen);
}

bool check_dynamic_ref(checker& c, const frame& f) {
  auto found = c.of().dynamic_references.find(&f.schema);
  if (found == c.of().dynamic_references.end()) {
    return true;
  }
  const auto& [target, name] = found->second;
  for (const auto* resource : c.scope()) {
    auto anchor = resource->dynamic_anchors.find(name);
    if (!name.empty() && anchor != resource->dynamic_anchors.end()) {
      return c.apply(*anchor->second, f.value, f.seen);
    }
  }
  return c.apply(*target, f.value, f.seen);
}

bool check_type(checker& c, const frame& f) {
  auto fits = [&](const json& type) {
    return type.is_string() && has_type(f.value, type.get_ref<const std::string&>());
  };
  if (f.argument.is_string()) {
    return fits(f.argument) ||
           c.complain(fmt::format("expected {}, got {}", f.argument.get<std::string>(), got(f)));
  }
  if (!f.argument.is_array() || std::any_of(f.argument.begin(), f.argument.end(), fits)) {
    return true;
  }
  std::vector<std::string> names;
  for (const auto& type : f.argument) {
    names.push_back(type.is_string() ? type.get<std::string>() : "?");
  }
  return c.complain(fmt::format("expected {}, got {}", fmt::join(names, " or "), got(f)));
}

bool check_enum(checker& c, const frame& f) {
  if (!f.argument.is_array() || !c.spend(f.argument.size()) ||
      std::find(f.argument.begin(), f.argument.end(), f.value) != f.argument.end()) {
    return true;
  }
  if (c.is_silent()) {
    return false;
  }
  std::vector<std::string> shown;
  std::vector<std::string_view> texts;
  for (const auto& each : f.argument) {
    if (each.is_string()) {
      texts.push_back(each.get_ref<const std::string&>());
    }
    if (shown.size() < most_names) {
      shown.push_back(shown_value(each));
    }
  }
  bool more = f.argument.size() > most_names;
  auto hint =
      f.value.is_string() ? guess(f.value.get_ref<const std::string&>(), texts) : std::string{};
  return c.complain(fmt::format("expected one of {}{}, got {}{}", fmt::join(shown, ", "),
                                more ? ", …" : "", shown_value(f.value), hint));
}

bool check_const(checker& c, const frame& f) {
  return f.value == f.argument ||
         c.complain(fmt::format("expected {}, got {}", shown_value(f.argument), got(f)));
}

bool check_all_of(checker& c, const frame& f) {
  bool fits = true;
  for (std::size_t i = 0; f.argument.is_array() && i < f.argument.size(); ++i) {
    fits = c.apply(f.argument[i], f.value, f.seen) && fits;
  }
  return fits;
}

bool check_any_of(checker& c, const frame& f) {
  if (!f.argument.is_array()) {
    return true;
  }
  bool fits = false;
  for (const auto& each : f.argument) {
    // All of them, if what they look at counts.
    fits = ((!fits || f.seen != nullptr) && c.would_fit(each, f.value, f.seen)) || fits;
  }
  return fits || complain_of_all(c, f);
}

bool check_one_of(checker& c, const frame& f) {
  if (!f.argument.is_array()) {
    return true;
  }
  std::size_t count = 0;
  for (const auto& each : f.argument) {
    count += c.would_fit(each, f.value, f.seen) ? 1 : 0;
  }
  if (count == 0) {
    return complain_of_all(c, f);
  }
  return count == 1 ||
         c.complain(fmt::format("fits {} of the alternatives, and must fit one", count));
}

bool check_not(checker& c, const frame& f) {
  return !c.would_fit(f.argument, f.value, nullptr) || c.has_stopped() ||
         c.complain("must not be " + shown_value(f.value));
}

bool check_if(checker& c, const frame& f) {
  auto branch = f.schema.find(c.would_fit(f.argument, f.value, f.seen) ? "then" : "else");
  return branch == f.schema.end() || c.apply(*branch, f.value, f.seen);
}

} // namespace bulkhead::schema
