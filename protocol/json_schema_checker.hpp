#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json_schema_parts.hpp"

/// Checking one value against a schema: the machine, and a function for each keyword.
namespace bulkhead::schema {

using nlohmann::json;

/// Names told of in one complaint.
inline constexpr std::size_t most_names = 20;

/// What a schema has looked at in a value, for `unevaluated…`.
struct seen_parts {
  std::set<std::string_view> members;
  std::set<std::size_t> items;

  void add(const seen_parts& other) {
    members.insert(other.members.begin(), other.members.end());
    items.insert(other.items.begin(), other.items.end());
  }
};

/// One schema that is an object, being applied to one value.
struct frame {
  const json& schema;
  const json& argument; ///< of the keyword
  const json& value;
  seen_parts* seen; ///< null: nobody wants to know

  void note_item(std::size_t index) const {
    if (seen != nullptr) {
      seen->items.insert(index);
    }
  }
  void note_member(std::string_view name) const {
    if (seen != nullptr) {
      seen->members.insert(name);
    }
  }
};

class checker {
public:
  checker(const json_schema::parts& of, const schema_bounds& bounds) : of_{of}, bounds_{bounds} {}

  schema_verdict run(const json& value);

  const json_schema::parts& of() const { return of_; }
  bool is_old() const { return of_.dialect == schema_dialect::draft_07; }

  /// The resources that the way here led through, the outermost first.
  const std::vector<const schema_resource*>& scope() const { return scope_; }

  /// Does `value` fit? What it fits by goes to `seen`, unless null.
  bool apply(const json& schema, const json& value, seen_parts* seen);
  bool apply_to_member(const json& schema, std::string_view name, const json& value);
  bool apply_to_item(const json& schema, std::size_t index, const json& value);

  /// As apply, without complaints, for schemas that a value need not fit.
  bool would_fit(const json& schema, const json& value, seen_parts* seen);

  /// Tells what is wrong at this place, unless nobody listens; always false.
  bool complain(const std::string& what);
  bool is_silent() const { return silent_ > 0; }

  /// Takes steps; false when there are no more, and then nothing counts any longer.
  bool spend(std::size_t steps);
  bool has_stopped() const { return !stopped_.empty(); }

private:
  bool apply_keywords(const json& schema, const json& value, seen_parts& own);
  bool stop(std::string why);
  std::string where() const;

  const json_schema::parts& of_;
  const schema_bounds& bounds_;
  std::vector<std::string> complaints_;
  std::string stopped_; ///< why; empty while it goes on
  std::size_t spent_ = 0;
  std::size_t depth_ = 0;
  int silent_ = 0;
  std::vector<std::pair<std::string_view, std::size_t>> path_; ///< a key, or an index
  std::vector<const schema_resource*> scope_;
};

// For people: short, and safe to show.
std::string shown_value(const json& value);
std::string shown_name(std::string_view name);
std::string_view type_name(const json& value);
/// `; did you mean …?`, or nothing.
std::string guess(std::string_view name, const std::vector<std::string_view>& known);

bool no_more(double size, double bound);
bool no_less(double size, double bound);
/// Is the number of `of` in the value as the keyword wants it, "at most" or "at least" so many?
bool check_size(checker& c, const frame& f, std::size_t size, const char* what, const char* of,
                bool (*fits)(double, double));

/// Does a text match a compiled pattern, or can't that be told?
bool matches(checker& c, const std::string& pattern, const std::string& text);

// The keywords.
bool check_additional_items(checker& c, const frame& f);
bool check_additional_properties(checker& c, const frame& f);
bool check_all_of(checker& c, const frame& f);
bool check_any_of(checker& c, const frame& f);
bool check_const(checker& c, const frame& f);
bool check_contains(checker& c, const frame& f);
bool check_dependent(checker& c, const frame& f);
bool check_dynamic_ref(checker& c, const frame& f);
bool check_enum(checker& c, const frame& f);
bool check_exclusive_maximum(checker& c, const frame& f);
bool check_exclusive_minimum(checker& c, const frame& f);
bool check_if(checker& c, const frame& f);
bool check_items(checker& c, const frame& f);
bool check_max_items(checker& c, const frame& f);
bool check_max_length(checker& c, const frame& f);
bool check_max_properties(checker& c, const frame& f);
bool check_maximum(checker& c, const frame& f);
bool check_min_items(checker& c, const frame& f);
bool check_min_length(checker& c, const frame& f);
bool check_min_properties(checker& c, const frame& f);
bool check_minimum(checker& c, const frame& f);
bool check_multiple_of(checker& c, const frame& f);
bool check_not(checker& c, const frame& f);
bool check_one_of(checker& c, const frame& f);
bool check_pattern(checker& c, const frame& f);
bool check_pattern_properties(checker& c, const frame& f);
bool check_prefix_items(checker& c, const frame& f);
bool check_properties(checker& c, const frame& f);
bool check_property_names(checker& c, const frame& f);
bool check_ref(checker& c, const frame& f);
bool check_required(checker& c, const frame& f);
bool check_type(checker& c, const frame& f);
bool check_unevaluated_items(checker& c, const frame& f);
bool check_unevaluated_properties(checker& c, const frame& f);
bool check_unique_items(checker& c, const frame& f);

} // namespace bulkhead::schema
