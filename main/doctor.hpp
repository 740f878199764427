#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "protocol/error.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// What doctor found out: a report, or why there is none.
struct diagnosis {
  std::optional<runtime_report> report;
  std::optional<error> failure;
  std::optional<sweep_report> swept; ///< when a sweep was asked for, and nothing else
  std::vector<std::string> remarks;  ///< about the settings
  std::vector<config_problem> problems;
};

/// For people: what runs the sandboxes, then a line a constraint, then what to do.
std::string render_doctor_table(const diagnosis& found);

/// The same as JSON: {ok, error?, runtime?, constraints?, warnings?, settings?, configuration?,
/// swept?}.
std::string render_doctor_json(const diagnosis& found);

/// Is there a runtime, and does every constraint hold? For a sweep: did it succeed?
bool all_is_well(const diagnosis& found);

} // namespace bulkhead
