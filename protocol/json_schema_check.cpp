// Values against schemas: the keywords. Names of members and texts come from others, so that all
// that is told of them is short.

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "protocol/json_schema_parts.hpp"
#include "protocol/printable.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t most_complaints = 3;
constexpr std::size_t longest_shown = 60;
constexpr std::size_t most_names = 20;
/// Bytes of a text that a pattern looks at for a step.
constexpr std::size_t bytes_a_step = 256;

/// What a schema has looked at in a value, for `unevaluated…`.
struct seen_parts {
  std::set<std::string_view> members;
  std::set<std::size_t> items;

  void add(const seen_parts& other) {
    members.insert(other.members.begin(), other.members.end());
    items.insert(other.items.begin(), other.items.end());
  }
};

std::string shown_value(const json& value) {
  return printable(
      shortened(value.dump(-1, ' ', false, json::error_handler_t::replace), longest_shown));
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

bool is_whole(const json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
}

bool has_type(const json& value, const std::string& type) {
  return type == "integer"  ? is_whole(value)
         : type == "number" ? value.is_number()
                            : type_name(value) == type;
}

bool is_multiple(const json& value, const json& of) {
  if (value.is_number_integer() && of.is_number_integer() && of > 0) {
    return value.is_number_unsigned() && of.is_number_unsigned()
               ? value.get<std::uint64_t>() % of.get<std::uint64_t>() == 0
               : value.get<std::int64_t>() % of.get<std::int64_t>() == 0;
  }
  // What people mean by 0.07 and 0.01, which no double holds exactly.
  auto times = value.get<double>() / of.get<double>();
  return std::isfinite(times) &&
         std::abs(times - std::round(times)) <= 1e-9 * std::max(1.0, std::abs(times));
}

std::string guess(std::string_view name, const std::vector<std::string_view>& known) {
  auto similar = similar_names(name, known);
  return similar.empty() ? "" : fmt::format("; did you mean {}?", shown_name(similar.front()));
}

class checker {
public:
  checker(const json_schema::parts& of, const schema_bounds& bounds) : of_{of}, bounds_{bounds} {}

  schema_verdict run(const json& value) {
    bool fits = apply(of_.document, value, nullptr);
    if (!stopped_.empty()) {
      return {schema_verdict::kind::unchecked, stopped_};
    }
    if (fits) {
      return {};
    }
    return {schema_verdict::kind::misfits, fmt::format("{}", fmt::join(complaints_, "; "))};
  }

private:
  /// One schema that is an object, being applied to one value.
  struct frame {
    const json& schema;
    const json& argument; ///< of the keyword
    const json& value;
    seen_parts* seen;
  };
  using handler = bool (checker::*)(const frame&);
  struct keyword {
    std::string_view name;
    handler apply;
    bool is_new = false; ///< unknown to draft 7
  };

  // --- the machine

  bool stop(std::string why) {
    if (stopped_.empty()) {
      stopped_ = std::move(why);
    }
    return true;
  }

  bool spend(std::size_t steps) {
    if (steps > bounds_.steps - std::min(spent_, bounds_.steps)) {
      stop("checking takes too many steps");
      return false;
    }
    spent_ += steps;
    return true;
  }

  bool complain(std::string what) {
    if (silent_ == 0 && complaints_.size() < most_complaints) {
      complaints_.push_back(where() + std::move(what));
    }
    return false;
  }

  std::string where() const {
    std::string path;
    for (const auto& [key, index] : path_) {
      bool plain = !key.empty() && key.size() <= longest_shown &&
                   std::all_of(key.begin(), key.end(), [](char c) {
                     return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
                   });
      path += key.data() == nullptr ? fmt::format("[{}]", index)
              : plain               ? (path.empty() ? "" : ".") + std::string{key}
                                    : fmt::format("[{}]", shown_name(key));
    }
    return path.empty() ? path : path + ": ";
  }

  bool apply(const json& schema, const json& value, seen_parts* seen) {
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

  bool apply_keywords(const json& schema, const json& value, seen_parts& own) {
    bool old = of_.dialect == schema_dialect::draft_07;
    auto* seen = of_.asks_for_unevaluated ? &own : nullptr;
    if (auto found = schema.find("$ref"); old && found != schema.end()) {
      return check_ref({schema, *found, value, seen});
    }
    bool fits = true;
    for (const auto& each : keywords()) {
      auto found = each.is_new && old ? schema.end() : schema.find(each.name);
      if (found != schema.end()) {
        fits = (this->*each.apply)({schema, *found, value, seen}) && fits;
        if (!stopped_.empty() || (!fits && silent_ > 0)) {
          return fits;
        }
      }
    }
    return fits;
  }

  /// Without complaints, for schemas that a value need not fit.
  bool would_fit(const json& schema, const json& value, seen_parts* seen) {
    ++silent_;
    bool fits = apply(schema, value, seen);
    --silent_;
    return fits;
  }

  bool apply_to_member(const json& schema, std::string_view name, const json& value) {
    path_.emplace_back(name, 0);
    bool fits = apply(schema, value, nullptr);
    path_.pop_back();
    return fits;
  }

  bool apply_to_item(const json& schema, std::size_t index, const json& value) {
    path_.emplace_back(std::string_view{}, index);
    bool fits = apply(schema, value, nullptr);
    path_.pop_back();
    return fits;
  }

  // --- references

  bool check_ref(const frame& f) {
    auto target = of_.references.find(&f.schema);
    return target == of_.references.end() || apply(*target->second, f.value, f.seen);
  }

  bool check_dynamic_ref(const frame& f) {
    auto found = of_.dynamic_references.find(&f.schema);
    if (found == of_.dynamic_references.end()) {
      return true;
    }
    const auto& [target, name] = found->second;
    for (const auto* resource : scope_) {
      auto anchor = resource->dynamic_anchors.find(name);
      if (!name.empty() && anchor != resource->dynamic_anchors.end()) {
        return apply(*anchor->second, f.value, f.seen);
      }
    }
    return apply(*target, f.value, f.seen);
  }

  // --- any value

  bool check_type(const frame& f) {
    auto fits = [&](const json& type) {
      return type.is_string() && has_type(f.value, type.get_ref<const std::string&>());
    };
    if (f.argument.is_string()) {
      return fits(f.argument) ||
             complain(fmt::format("expected {}, got {}", f.argument.get<std::string>(), got(f)));
    }
    if (!f.argument.is_array() || std::any_of(f.argument.begin(), f.argument.end(), fits)) {
      return true;
    }
    std::vector<std::string> names;
    for (const auto& type : f.argument) {
      names.push_back(type.is_string() ? type.get<std::string>() : "?");
    }
    return complain(fmt::format("expected {}, got {}", fmt::join(names, " or "), got(f)));
  }

  static std::string got(const frame& f) {
    return f.value.is_null() ? "null"
                             : fmt::format("the {} {}", type_name(f.value), shown_value(f.value));
  }

  bool check_enum(const frame& f) {
    if (!f.argument.is_array() || !spend(f.argument.size()) ||
        std::find(f.argument.begin(), f.argument.end(), f.value) != f.argument.end()) {
      return true;
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
        silent_ == 0 && f.value.is_string() ? guess(f.value.get_ref<const std::string&>(), texts) : "";
    return complain(fmt::format("expected one of {}{}, got {}{}", fmt::join(shown, ", "),
                                more ? ", …" : "", shown_value(f.value), hint));
  }

  bool check_const(const frame& f) {
    return f.value == f.argument ||
           complain(fmt::format("expected {}, got {}", shown_value(f.argument), got(f)));
  }

  bool check_all_of(const frame& f) {
    bool fits = true;
    for (std::size_t i = 0; f.argument.is_array() && i < f.argument.size(); ++i) {
      fits = apply(f.argument[i], f.value, f.seen) && fits;
    }
    return fits;
  }

  bool check_any_of(const frame& f) {
    if (!f.argument.is_array()) {
      return true;
    }
    bool fits = false;
    for (const auto& each : f.argument) {
      // All of them, if what they look at counts.
      fits = ((!fits || f.seen != nullptr) && would_fit(each, f.value, f.seen)) || fits;
    }
    return fits || complain_of_all(f);
  }

  bool check_one_of(const frame& f) {
    if (!f.argument.is_array()) {
      return true;
    }
    std::size_t count = 0;
    for (const auto& each : f.argument) {
      count += would_fit(each, f.value, f.seen) ? 1 : 0;
    }
    if (count == 0) {
      return complain_of_all(f);
    }
    return count == 1 ||
           complain(fmt::format("fits {} of the alternatives, and must fit one", count));
  }

  /// What to say of a value that fits no alternative: what is wrong with it by the only one of its
  /// type, if there is such a one.
  bool complain_of_all(const frame& f) {
    if (silent_ > 0) {
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
      return apply(*likely, f.value, nullptr);
    }
    return count == 0 ? complain(fmt::format("expected {}, got {}", fmt::join(types, " or "), got(f)))
                      : complain(fmt::format("fits none of {} alternatives: {}", f.argument.size(),
                                             got(f)));
  }

  bool check_not(const frame& f) {
    return !would_fit(f.argument, f.value, nullptr) || !stopped_.empty() ||
           complain("must not be " + shown_value(f.value));
  }

  bool check_if(const frame& f) {
    auto branch = f.schema.find(would_fit(f.argument, f.value, f.seen) ? "then" : "else");
    return branch == f.schema.end() || apply(*branch, f.value, f.seen);
  }

  // --- numbers and texts

  template <class Fits>
  bool check_number(const frame& f, const char* what, Fits fits) {
    return !f.argument.is_number() || !f.value.is_number() || fits(f.value, f.argument) ||
           complain(fmt::format("expected a number {} {}, got {}", what, shown_value(f.argument),
                                shown_value(f.value)));
  }
  bool check_maximum(const frame& f) {
    return check_number(f, "of at most", [](const json& a, const json& b) { return a <= b; });
  }
  bool check_minimum(const frame& f) {
    return check_number(f, "of at least", [](const json& a, const json& b) { return a >= b; });
  }
  bool check_exclusive_maximum(const frame& f) {
    return check_number(f, "below", [](const json& a, const json& b) { return a < b; });
  }
  bool check_exclusive_minimum(const frame& f) {
    return check_number(f, "above", [](const json& a, const json& b) { return a > b; });
  }
  bool check_multiple_of(const frame& f) {
    return check_number(f, "that is a multiple of", is_multiple);
  }

  template <class Fits>
  bool check_size(const frame& f, std::size_t size, const char* what, const char* of, Fits fits) {
    return !f.argument.is_number() || fits(static_cast<double>(size), f.argument.get<double>()) ||
           complain(fmt::format("expected {} {} {}, got {}", what, shown_value(f.argument), of, size));
  }
  static bool no_more(double size, double bound) { return size <= bound; }
  static bool no_less(double size, double bound) { return size >= bound; }

  std::size_t characters(const json& text) {
    const auto& bytes = text.get_ref<const std::string&>();
    spend(bytes.size() / bytes_a_step);
    return static_cast<std::size_t>(std::count_if(
        bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  }
  bool check_max_length(const frame& f) {
    return !f.value.is_string() ||
           check_size(f, characters(f.value), "at most", "characters", no_more);
  }
  bool check_min_length(const frame& f) {
    return !f.value.is_string() ||
           check_size(f, characters(f.value), "at least", "characters", no_less);
  }

  bool matches(const std::string& pattern, const std::string& text) {
    auto found = of_.patterns.find(pattern);
    return found == of_.patterns.end() || found->second == nullptr ||
           !spend(1 + text.size() / bytes_a_step) || RE2::PartialMatch(text, *found->second);
  }

  bool check_pattern(const frame& f) {
    return !f.argument.is_string() || !f.value.is_string() ||
           matches(f.argument.get_ref<const std::string&>(),
                   f.value.get_ref<const std::string&>()) ||
           complain(fmt::format("expected a text that matches {}, got {}", shown_value(f.argument),
                                shown_value(f.value)));
  }

  // --- arrays

  bool check_items_from(const frame& f, const json& schema, std::size_t first) {
    if (!f.value.is_array()) {
      return true;
    }
    bool fits = true;
    for (std::size_t i = first; i < f.value.size() && stopped_.empty(); ++i) {
      fits = apply_to_item(schema, i, f.value[i]) && fits;
      note_item(f, i);
      if (!fits && silent_ > 0) {
        break;
      }
    }
    return fits;
  }

  static void note_item(const frame& f, std::size_t index) {
    if (f.seen != nullptr) {
      f.seen->items.insert(index);
    }
  }

  bool check_each_item(const frame& f) {
    bool fits = true;
    for (std::size_t i = 0; f.value.is_array() && i < std::min(f.value.size(), f.argument.size());
         ++i) {
      fits = apply_to_item(f.argument[i], i, f.value[i]) && fits;
      note_item(f, i);
    }
    return fits;
  }

  bool check_prefix_items(const frame& f) {
    return !f.argument.is_array() || check_each_item(f);
  }

  bool check_items(const frame& f) {
    if (f.argument.is_array()) {
      // As before 2020-12; servers write it to this day.
      return check_each_item(f);
    }
    auto prefix = f.schema.find("prefixItems");
    bool counts = of_.dialect != schema_dialect::draft_07 && prefix != f.schema.end();
    return check_items_from(f, f.argument, counts && prefix->is_array() ? prefix->size() : 0);
  }

  bool check_additional_items(const frame& f) {
    auto items = f.schema.find("items");
    return items == f.schema.end() || !items->is_array() ||
           check_items_from(f, f.argument, items->size());
  }

  bool check_contains(const frame& f) {
    if (!f.value.is_array()) {
      return true;
    }
    bool old = of_.dialect == schema_dialect::draft_07;
    auto bound = [&](const char* key, double otherwise) {
      auto found = f.schema.find(key);
      return !old && found != f.schema.end() && found->is_number() ? found->get<double>() : otherwise;
    };
    double count = 0;
    for (std::size_t i = 0; i < f.value.size() && stopped_.empty(); ++i) {
      if (would_fit(f.argument, f.value[i], nullptr)) {
        ++count;
        note_item(f, i);
      }
    }
    auto least = bound("minContains", 1);
    return (count >= least && count <= bound("maxContains", count)) ||
           complain(fmt::format("{} of {} items are as some must be", count, f.value.size()));
  }

  bool check_max_items(const frame& f) {
    return !f.value.is_array() || check_size(f, f.value.size(), "at most", "items", no_more);
  }
  bool check_min_items(const frame& f) {
    return !f.value.is_array() || check_size(f, f.value.size(), "at least", "items", no_less);
  }

  bool check_unique_items(const frame& f) {
    if (!f.value.is_array() || f.argument != true || !spend(f.value.size())) {
      return true;
    }
    std::vector<const json*> sorted;
    for (const auto& each : f.value) {
      sorted.push_back(&each);
    }
    std::sort(sorted.begin(), sorted.end(), [](const json* a, const json* b) { return *a < *b; });
    auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
                                    [](const json* a, const json* b) { return *a == *b; });
    return twice == sorted.end() ||
           complain(fmt::format("{} is in it more than once", shown_value(**twice)));
  }

  bool check_unevaluated_items(const frame& f) {
    bool fits = true;
    for (std::size_t i = 0; f.value.is_array() && i < f.value.size() && stopped_.empty(); ++i) {
      if (!f.seen->items.contains(i)) {
        fits = apply_to_item(f.argument, i, f.value[i]) && fits;
        note_item(f, i);
      }
    }
    return fits;
  }

  // --- objects

  static void note_member(const frame& f, std::string_view name) {
    if (f.seen != nullptr) {
      f.seen->members.insert(name);
    }
  }

  bool check_properties(const frame& f) {
    if (!f.value.is_object() || !f.argument.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& [name, value] : f.value.items()) {
      auto schema = f.argument.find(name);
      if (schema != f.argument.end()) {
        fits = apply_to_member(*schema, name, value) && fits;
        note_member(f, name);
      }
    }
    return fits;
  }

  bool check_pattern_properties(const frame& f) {
    if (!f.value.is_object() || !f.argument.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& [pattern, schema] : f.argument.items()) {
      if (of_.patterns.at(pattern) == nullptr) {
        continue;
      }
      for (const auto& [name, value] : f.value.items()) {
        if (stopped_.empty() && matches(pattern, name)) {
          fits = apply_to_member(schema, name, value) && fits;
          note_member(f, name);
        }
      }
    }
    return fits;
  }

  /// Is the member told of by `properties` or `patternProperties` beside?
  bool is_known(const frame& f, const std::string& name) {
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
                       [&](const auto& each) { return matches(each.key(), name); });
  }

  bool check_additional_properties(const frame& f) {
    if (!f.value.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& [name, value] : f.value.items()) {
      if (!stopped_.empty() || is_known(f, name)) {
        continue;
      }
      note_member(f, name);
      fits = (f.argument == false ? complain_of_name(f, name)
                                  : apply_to_member(f.argument, name, value)) &&
             fits;
    }
    return fits;
  }

  bool complain_of_name(const frame& f, const std::string& name) {
    if (silent_ > 0) {
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
    return complain(fmt::format("there is no {}{}", shown_name(name), hint));
  }

  static std::vector<std::string_view> names_of(const json& schema) {
    std::vector<std::string_view> names;
    auto properties = schema.find("properties");
    if (properties != schema.end() && properties->is_object()) {
      for (const auto& each : properties->get_ref<const json::object_t&>()) {
        names.emplace_back(each.first);
      }
    }
    return names;
  }

  bool check_property_names(const frame& f) {
    if (!f.value.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& each : f.value.items()) {
      fits = apply_to_member(f.argument, each.key(), json(each.key())) && fits;
    }
    return fits;
  }

  bool require(const frame& f, const json& names, std::string_view why) {
    bool fits = true;
    for (const auto& name : names) {
      if (!spend(1) || !name.is_string() || f.value.contains(name.get_ref<const std::string&>())) {
        continue;
      }
      fits = complain(fmt::format("{} is missing{}", shown_value(name), why));
    }
    return fits;
  }

  bool check_required(const frame& f) {
    return !f.value.is_object() || !f.argument.is_array() || require(f, f.argument, "");
  }

  bool check_dependent(const frame& f) {
    if (!f.value.is_object() || !f.argument.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& [name, what] : f.argument.items()) {
      if (f.value.contains(name)) {
        fits = (what.is_array() ? require(f, what, fmt::format(", which {} needs", shown_name(name)))
                                : apply(what, f.value, f.seen)) &&
               fits;
      }
    }
    return fits;
  }

  bool check_max_properties(const frame& f) {
    return !f.value.is_object() || check_size(f, f.value.size(), "at most", "members", no_more);
  }
  bool check_min_properties(const frame& f) {
    return !f.value.is_object() || check_size(f, f.value.size(), "at least", "members", no_less);
  }

  bool check_unevaluated_properties(const frame& f) {
    if (!f.value.is_object()) {
      return true;
    }
    bool fits = true;
    for (const auto& [name, value] : f.value.items()) {
      if (!f.seen->members.contains(name)) {
        fits = (f.argument == false ? complain_of_name(f, name)
                                    : apply_to_member(f.argument, name, value)) &&
               fits;
        note_member(f, name);
      }
    }
    return fits;
  }

  /// In the order in which they are looked at: what others depend on comes first.
  static const std::vector<keyword>& keywords();

  const json_schema::parts& of_;
  const schema_bounds& bounds_;
  std::vector<std::string> complaints_;
  std::string stopped_;
  std::size_t spent_ = 0;
  std::size_t depth_ = 0;
  int silent_ = 0;
  std::vector<std::pair<std::string_view, std::size_t>> path_; ///< a key, or an index
  std::vector<const schema_resource*> scope_;
};

const std::vector<checker::keyword>& checker::keywords() {
  static const std::vector<keyword> all = {
      {"type", &checker::check_type},
      {"enum", &checker::check_enum},
      {"const", &checker::check_const},
      {"required", &checker::check_required},
      {"maximum", &checker::check_maximum},
      {"minimum", &checker::check_minimum},
      {"exclusiveMaximum", &checker::check_exclusive_maximum},
      {"exclusiveMinimum", &checker::check_exclusive_minimum},
      {"multipleOf", &checker::check_multiple_of},
      {"maxLength", &checker::check_max_length},
      {"minLength", &checker::check_min_length},
      {"pattern", &checker::check_pattern},
      {"maxItems", &checker::check_max_items},
      {"minItems", &checker::check_min_items},
      {"uniqueItems", &checker::check_unique_items},
      {"maxProperties", &checker::check_max_properties},
      {"minProperties", &checker::check_min_properties},
      {"prefixItems", &checker::check_prefix_items, true},
      {"items", &checker::check_items},
      {"additionalItems", &checker::check_additional_items},
      {"contains", &checker::check_contains},
      {"properties", &checker::check_properties},
      {"patternProperties", &checker::check_pattern_properties},
      {"additionalProperties", &checker::check_additional_properties},
      {"propertyNames", &checker::check_property_names},
      {"dependencies", &checker::check_dependent},
      {"dependentRequired", &checker::check_dependent, true},
      {"dependentSchemas", &checker::check_dependent, true},
      {"$ref", &checker::check_ref},
      {"$dynamicRef", &checker::check_dynamic_ref, true},
      {"allOf", &checker::check_all_of},
      {"anyOf", &checker::check_any_of},
      {"oneOf", &checker::check_one_of},
      {"not", &checker::check_not},
      {"if", &checker::check_if},
      {"unevaluatedItems", &checker::check_unevaluated_items, true},
      {"unevaluatedProperties", &checker::check_unevaluated_properties, true},
  };
  return all;
}

} // namespace

schema_verdict check_value(const json_schema::parts& schema, const json& value,
                           const schema_bounds& bounds) {
  return checker{schema, bounds}.run(value);
}

} // namespace bulkhead
