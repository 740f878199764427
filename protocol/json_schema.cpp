#include "protocol/json_schema.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "protocol/json_schema_parts.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t most_subschemas = 100'000;
constexpr std::size_t deepest_schema = 100;
constexpr std::size_t longest_shown_reference = 200;

// Keywords by what their values hold: a schema, a list of schemas, schemas by name.
constexpr std::array<std::string_view, 11> with_schema = {"not",
                                                          "if",
                                                          "then",
                                                          "else",
                                                          "additionalProperties",
                                                          "contains",
                                                          "items",
                                                          "propertyNames",
                                                          "additionalItems",
                                                          "unevaluatedItems",
                                                          "unevaluatedProperties"};
constexpr std::array<std::string_view, 5> with_list = {"allOf", "anyOf", "oneOf", "prefixItems",
                                                       "items"};
constexpr std::array<std::string_view, 6> with_names = {
    "properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"};

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_schema(const json& value) {
  return value.is_object() || value.is_boolean();
}

const std::string* text_member(const json& schema, const char* key) {
  auto found = schema.find(key);
  return found != schema.end() && found->is_string() ? &found->get_ref<const std::string&>()
                                                     : nullptr;
}

std::string percent_decoded(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 87 : -1;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// What a JSON pointer (RFC 6901) leads to; null for nothing.
const json* follow_pointer(const json& root, std::string_view pointer) {
  const auto* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    auto end = std::min(pointer.find('/'), pointer.size());
    std::string key;
    for (std::size_t i = 0; i < end; ++i) {
      bool escaped = pointer[i] == '~' && i + 1 < end;
      key += !escaped ? pointer[i] : pointer[++i] == '1' ? '/' : '~';
    }
    pointer.remove_prefix(end);
    if (at->is_object()) {
      auto found = at->find(key);
      at = found != at->end() ? &*found : nullptr;
    } else if (at->is_array() && !key.empty() && key.size() < 9 &&
               key.find_first_not_of("0123456789") == std::string::npos &&
               std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else {
      at = nullptr;
    }
    if (at == nullptr) {
      return nullptr;
    }
  }
  return at;
}

/// Walks a schema and finds what its references mean.
class compiler {
public:
  explicit compiler(json_schema::parts& parts) : parts_{parts} {}

  std::optional<error> run() {
    auto& whole = parts_.resources.emplace_back();
    whole.root = &parts_.document;
    visit(parts_.document, whole, 0);
    while (!failure_ && !pending_.empty()) {
      auto each = std::move(pending_.back());
      pending_.pop_back();
      resolve(each);
    }
    return std::move(failure_);
  }

private:
  struct reference {
    const json* schema;
    std::string text;
    const schema_resource* from;
    bool dynamic;
  };

  bool is_old() const { return parts_.dialect == schema_dialect::draft_07; }

  void give_up(errc code, std::string why) {
    if (!failure_) {
      failure_ = error{code, std::move(why)};
    }
  }

  void visit(const json& schema, schema_resource& within, std::size_t depth) {
    if (failure_ || parts_.resource_of.contains(&schema)) {
      return;
    }
    if (depth > deepest_schema || parts_.resource_of.size() >= most_subschemas) {
      give_up(errc::too_large, "the schema is too large");
      return;
    }
    if (!is_schema(schema)) {
      give_up(errc::malformed,
              fmt::format("the schema has {} where a schema belongs",
                          schema.dump(-1, ' ', false, json::error_handler_t::replace)
                              .substr(0, longest_shown_reference)));
      return;
    }
    auto& home = schema.is_object() ? identify(schema, within) : within;
    parts_.resource_of.emplace(&schema, &home);
    if (!schema.is_object()) {
      return;
    }
    for (const auto& [key, value] : schema.items()) {
      visit_keyword(schema, key, value, home, depth + 1);
    }
  }

  /// Notes identifier and anchors; answers the resource that the schema belongs to.
  schema_resource& identify(const json& schema, schema_resource& within) {
    auto* home = &within;
    const auto* id = text_member(schema, "$id");
    // Draft 7, 8.3: other members beside a reference are ignored.
    if (id != nullptr && !(is_old() && schema.contains("$ref"))) {
      auto name = id->substr(0, id->find('#'));
      if (!name.empty()) {
        home = &schema == within.root ? &within : &parts_.resources.emplace_back();
        home->uri = resolve_uri(within.uri, name);
        home->root = &schema;
      }
      if (is_old() && id->size() > name.size() + 1) {
        home->anchors.emplace(id->substr(name.size() + 1), &schema);
      }
    }
    if (is_old()) {
      return *home;
    }
    if (const auto* anchor = text_member(schema, "$anchor")) {
      home->anchors.emplace(*anchor, &schema);
    }
    if (const auto* anchor = text_member(schema, "$dynamicAnchor")) {
      home->anchors.emplace(*anchor, &schema);
      home->dynamic_anchors.emplace(*anchor, &schema);
    }
    return *home;
  }

  void visit_keyword(const json& schema, const std::string& key, const json& value,
                     schema_resource& home, std::size_t depth) {
    // A text where a schema belongs is none, which `visit` tells.
    if (value.is_string() && !is_among(with_schema, key)) {
      visit_text(schema, key, value.get_ref<const std::string&>(), home);
    } else if (value.is_array() && is_among(with_list, key)) {
      for (const auto& each : value) {
        visit(each, home, depth);
      }
    } else if (value.is_object() && is_among(with_names, key)) {
      for (const auto& [name, each] : value.items()) {
        if (key == "patternProperties") {
          add_pattern(name);
        }
        if (key != "dependencies" || !each.is_array()) {
          visit(each, home, depth);
        }
      }
    } else if (is_among(with_schema, key)) {
      parts_.asks_for_unevaluated |= key.starts_with("unevaluated");
      visit(value, home, depth);
    }
  }

  void visit_text(const json& schema, const std::string& key, const std::string& value,
                  const schema_resource& home) {
    if (key == "$ref" || (key == "$dynamicRef" && !is_old())) {
      pending_.push_back({&schema, value, &home, key == "$dynamicRef"});
    } else if (key == "$recursiveRef" && !is_old()) {
      give_up(errc::not_found, "the schema uses $recursiveRef, which is not followed");
    } else if (key == "pattern") {
      add_pattern(value);
    }
  }

  void add_pattern(const std::string& pattern) {
    auto [at, is_new] = parts_.patterns.try_emplace(pattern);
    if (is_new) {
      at->second = compile_pattern(pattern);
    }
  }

  void resolve(const reference& each) {
    auto uri = resolve_uri(each.from->uri, each.text);
    auto hash = std::min(uri.find('#'), uri.size());
    auto fragment =
        hash < uri.size() ? percent_decoded(std::string_view{uri}.substr(hash + 1)) : std::string{};
    uri.resize(hash);
    auto resource = std::find_if(parts_.resources.begin(), parts_.resources.end(),
                                 [&](const schema_resource& one) { return one.uri == uri; });
    const json* target = nullptr;
    bool by_name = !fragment.empty() && fragment.front() != '/';
    if (resource != parts_.resources.end()) {
      auto anchor = resource->anchors.find(fragment);
      target = !by_name                            ? follow_pointer(*resource->root, fragment)
               : anchor != resource->anchors.end() ? anchor->second
                                                   : nullptr;
    }
    if (target == nullptr) {
      give_up(errc::not_found,
              fmt::format("the schema refers to \"{}\", which isn't in it; nothing is fetched",
                          printable(each.text.substr(0, longest_shown_reference))));
      return;
    }
    if (each.dynamic) {
      bool moves = by_name && resource->dynamic_anchors.contains(fragment);
      parts_.dynamic_references[each.schema] = {target, moves ? fragment : std::string{}};
    } else {
      parts_.references[each.schema] = target;
    }
    visit(*target, *resource, 0);
  }

  json_schema::parts& parts_;
  std::vector<reference> pending_;
  std::optional<error> failure_;
};

/// What `$schema` says; nothing if it names a dialect of its own.
std::optional<schema_dialect> dialect_of(const json& document, schema_dialect unless_said) {
  const auto* said = document.is_object() ? text_member(document, "$schema") : nullptr;
  if (said == nullptr) {
    return unless_said;
  }
  auto is_from = [&](const char* folder) {
    return said->starts_with(fmt::format("http://json-schema.org/{}", folder)) ||
           said->starts_with(fmt::format("https://json-schema.org/{}", folder));
  };
  // Drafts 4 and 6 are draft 7 with less in it, 2019-09 is 2020-12 but for arrays of items.
  if (is_from("draft-0")) {
    return schema_dialect::draft_07;
  }
  return is_from("draft/") || is_from("schema") ? std::optional{schema_dialect::draft_2020_12}
                                                : std::nullopt;
}

} // namespace

expected<json_schema> json_schema::compile(std::string_view text, schema_dialect unless_said) {
  auto compiled = std::make_shared<parts>();
  compiled->document = json::parse(text, nullptr, false);
  if (compiled->document.is_discarded()) {
    return fail(errc::malformed, "the schema is no JSON, or has a number that is too large");
  }
  auto dialect = dialect_of(compiled->document, unless_said);
  if (!dialect) {
    return fail(errc::not_found, "the schema's $schema names a dialect that isn't known");
  }
  compiled->dialect = *dialect;
  if (auto failure = compiler{*compiled}.run()) {
    return tl::unexpected{std::move(*failure)};
  }
  return json_schema{std::move(compiled)};
}

schema_verdict json_schema::check(std::string_view value, const schema_bounds& bounds) const {
  auto parsed = json::parse(value, nullptr, false);
  if (parsed.is_discarded()) {
    return {schema_verdict::kind::unchecked, "a number is too large to be compared"};
  }
  return check_value(*parts_, parsed, bounds);
}

} // namespace bulkhead
