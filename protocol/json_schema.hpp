#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/error.hpp"

namespace bulkhead {

enum class schema_dialect : std::uint8_t { draft_2020_12, draft_07 };

/// What a check found.
struct schema_verdict {
  enum class kind : std::uint8_t {
    fits,
    misfits,
    unchecked, ///< it took too many steps, or the value can't be read
  };
  kind what = kind::fits;
  std::string text; ///< what is wrong and where, what was expected; or why it wasn't checked
};

/// What one check may take; schema and value come from others. A step is a schema applied to a
/// value, or a comparison within one.
struct schema_bounds {
  std::size_t steps = 2'000'000;
  std::size_t depth = 200;
};

/// A JSON Schema (2020-12, or draft 7 where `$schema` says so) that values can be checked against,
/// as often as one likes and from any thread.
///
/// References are followed within the document, by pointer, anchor or embedded `$id`; nothing is
/// ever fetched. `format` and the `content…` keywords are no assertions, as their default is. A
/// `pattern` is matched in linear time, and not checked if RE2 can't take it (look-ahead,
/// back-references). A keyword with a value of a wrong type is not checked either.
class json_schema {
public:
  /// `unless_said`: the dialect of a schema without `$schema`, which for MCP is 2020-12. Errors:
  /// malformed (no schema), not_found (a reference that leads out of the document or nowhere,
  /// a dialect of somebody's own), too_large (over 100,000 subschemas, or nested over 100 deep).
  static expected<json_schema> compile(std::string_view text,
                                       schema_dialect unless_said = schema_dialect::draft_2020_12);

  /// Checks a scanned JSON text. What is told of misfits is the first three.
  schema_verdict check(std::string_view value, const schema_bounds& bounds = {}) const;

  struct parts;

private:
  explicit json_schema(std::shared_ptr<const parts> compiled) : parts_{std::move(compiled)} {}

  std::shared_ptr<const parts> parts_;
};

} // namespace bulkhead
