#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>
#include <re2/re2.h>

#include "protocol/json_schema.hpp"

namespace bulkhead {

/// A schema with an identifier of its own, or the whole document.
struct schema_resource {
  std::string uri; ///< without fragment; empty for a document that doesn't say
  const nlohmann::json* root = nullptr;
  std::map<std::string, const nlohmann::json*, std::less<>> anchors;
  std::map<std::string, const nlohmann::json*, std::less<>> dynamic_anchors;
};

/// Where a `$dynamicRef` leads.
struct dynamic_reference {
  const nlohmann::json* target = nullptr; ///< unless the way here has another of that name
  std::string name;                       ///< of a dynamic anchor; empty: it is an ordinary `$ref`
};

/// A schema, its references resolved and its patterns compiled. Keyed by the subschemas of
/// `document`, which never moves.
struct json_schema::parts {
  nlohmann::json document;
  schema_dialect dialect = schema_dialect::draft_2020_12;
  std::deque<schema_resource> resources;
  std::unordered_map<const nlohmann::json*, const schema_resource*> resource_of;
  std::unordered_map<const nlohmann::json*, const nlohmann::json*> references;
  std::unordered_map<const nlohmann::json*, dynamic_reference> dynamic_references;
  std::unordered_map<std::string, std::unique_ptr<RE2>> patterns; ///< null: RE2 can't take it
  bool asks_for_unevaluated = false;
};

/// A reference resolved against a base (RFC 3986, 5.2), for what schemas have: no check of syntax.
std::string resolve_uri(std::string_view base, std::string_view reference);

/// A pattern of ECMA-262 for RE2: `\uXXXX` is spelled otherwise there. Null if RE2 can't take it.
std::unique_ptr<RE2> compile_pattern(std::string_view pattern);

/// Checks `value` against the whole schema.
schema_verdict check_value(const json_schema::parts& schema, const nlohmann::json& value,
                           const schema_bounds& bounds);

} // namespace bulkhead
