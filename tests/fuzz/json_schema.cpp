#include "protocol/json_schema.hpp"

#include "protocol/json_scan.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

constexpr schema_bounds few{5'000, 40};

using kind = schema_verdict::kind;

void check_verdict(const schema_verdict& verdict) {
  require((verdict.what == kind::fits) == verdict.text.empty(), "a misfit is explained");
  require(is_utf8(verdict.text), "what is told of a misfit is UTF-8");
  require(verdict.text.size() <= 16384, "what is told of a misfit is bounded");
}

/// The verdict of a schema made of this one.
schema_verdict ask(const std::string& schema, std::string_view value, schema_dialect dialect) {
  auto compiled = bulkhead::json_schema::compile(schema, dialect);
  require(compiled.has_value(), "a sound schema within another is sound");
  return compiled->check(value, few);
}

/// What the keywords that combine schemas promise. A schema with references means something else
/// elsewhere, and `unchecked` depends on what else there is to do.
void check_combined(std::string_view schema, std::string_view value, kind plain,
                    schema_dialect dialect) {
  if (schema.find('$') != std::string_view::npos || schema.find('\\') != std::string_view::npos ||
      schema.find("\"id\"") != std::string_view::npos || plain == kind::unchecked) {
    return;
  }
  const std::string text{schema};
  auto negated = ask(R"({"not":)" + text + "}", value, dialect).what;
  require(negated == kind::unchecked || (negated == kind::fits) == (plain == kind::misfits),
          "what is not a misfit fits");
  for (const auto* keyword : {"allOf", "anyOf", "oneOf"}) {
    auto same = ask(std::string{R"({")"} + keyword + R"(":[)" + text + "]}", value, dialect).what;
    require(same == kind::unchecked || same == plain, "one of one schema is that schema");
  }
}

void check_dialect(std::string_view schema, std::string_view value, schema_dialect dialect) {
  auto compiled = bulkhead::json_schema::compile(schema, dialect);
  if (!compiled) {
    require_message(compiled.error().message);
    return;
  }
  auto verdict = compiled->check(value, few);
  check_verdict(verdict);
  auto again = compiled->check(value, few);
  require(again.what == verdict.what && again.text == verdict.text, "a verdict stays the same");
  check_combined(schema, value, verdict.what, dialect);
}

} // namespace

/// A line with a schema, and a value, both of which callers have scanned.
void json_schema_target(std::string_view input) {
  auto schema = take_until(input, '\n');
  if (!scan_json(schema, {schema.size(), 120})) {
    return;
  }
  if (!scan_json(input, {input.size()})) {
    input = "null";
  }
  check_dialect(schema, input, schema_dialect::draft_2020_12);
  check_dialect(schema, input, schema_dialect::draft_07);
}

} // namespace bulkhead::fuzz
