#pragma once

#include <optional>
#include <string>

#include "actors/messages.hpp"
#include "protocol/error.hpp"

namespace bulkhead {

/// What doctor found out: a report, or why there is none.
struct diagnosis {
  std::optional<runtime_report> report;
  std::optional<error> failure;
  std::optional<sweep_report> swept; ///< only when a sweep was asked for
};

/// For people: what runs the sandboxes, then a line a constraint, then what to do.
std::string render_doctor_table(const diagnosis& found);

/// The same as JSON: {ok, error?, runtime?, constraints?, warnings?, swept?}.
std::string render_doctor_json(const diagnosis& found);

/// Is there a runtime, and does every constraint hold?
bool all_is_well(const diagnosis& found);

} // namespace bulkhead
