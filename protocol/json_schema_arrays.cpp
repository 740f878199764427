// Keywords for arrays.
#include "protocol/json_schema_checker.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead::schema {

namespace {

bool check_items_from(checker& c, const frame& f, const json& schema, std::size_t first) {
  if (!f.value.is_array()) {
    return true;
  }
  bool fits = true;
  for (std::size_t i = first; i < f.value.size() && !c.has_stopped(); ++i) {
    fits = c.apply_to_item(schema, i, f.value[i]) && fits;
    f.note_item(i);
    if (!fits && c.is_silent()) {
      break;
    }
  }
  return fits;
}

bool check_each_item(checker& c, const frame& f) {
  bool fits = true;
  for (std::size_t i = 0; f.value.is_array() && i < std::min(f.value.size(), f.argument.size());
       ++i) {
    fits = c.apply_to_item(f.argument[i], i, f.value[i]) && fits;
    f.note_item(i);
  }
  return fits;
}

} // namespace

bool check_prefix_items(checker& c, const frame& f) {
  return !f.argument.is_array() || check_each_item(c, f);
}

bool check_items(checker& c, const frame& f) {
  if (f.argument.is_array()) {
    // As before 2020-12; servers write it to this day.
    return check_each_item(c, f);
  }
  auto prefix = f.schema.find("prefixItems");
  bool counts = !c.is_old() && prefix != f.schema.end();
  return check_items_from(c, f, f.argument, counts && prefix->is_array() ? prefix->size() : 0);
}

bool check_additional_items(checker& c, const frame& f) {
  auto items = f.schema.find("items");
  return items == f.schema.end() || !items->is_array() ||
         check_items_from(c, f, f.argument, items->size());
}

bool check_contains(checker& c, const frame& f) {
  if (!f.value.is_array()) {
    return true;
  }
  bool old = c.is_old();
  auto bound = [&](const char* key, double otherwise) {
    auto found = f.schema.find(key);
    return !old && found != f.schema.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  double count = 0;
  for (std::size_t i = 0; i < f.value.size() && !c.has_stopped(); ++i) {
    if (c.would_fit(f.argument, f.value[i], nullptr)) {
      ++count;
      f.note_item(i);
    }
  }
  auto least = bound("minContains", 1);
  return (count >= least && count <= bound("maxContains", count)) ||
         c.complain(fmt::format("{} of {} items are as some must be", count, f.value.size()));
}

bool check_max_items(checker& c, const frame& f) {
  return !f.value.is_array() || check_size(c, f, f.value.size(), "at most", "items", no_more);
}
bool check_min_items(checker& c, const frame& f) {
  return !f.value.is_array() || check_size(c, f, f.value.size(), "at least", "items", no_less);
}

bool check_unique_items(checker& c, const frame& f) {
  if (!f.value.is_array() || f.argument != true || !c.spend(f.value.size())) {
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
         c.complain(fmt::format("{} is in it more than once", shown_value(**twice)));
}

bool check_unevaluated_items(checker& c, const frame& f) {
  bool fits = true;
  for (std::size_t i = 0; f.value.is_array() && i < f.value.size() && !c.has_stopped(); ++i) {
    if (!f.seen->items.contains(i)) {
      fits = c.apply_to_item(f.argument, i, f.value[i]) && fits;
      f.note_item(i);
    }
  }
  return fits;
}

} // namespace bulkhead::schema
