#include <algorithm>

#include <fmt/format.h>

#include "protocol/server_config.hpp"

namespace bulkhead {

std::string_view to_string(problem_kind kind) {
  return kind == problem_kind::error ? "error" : "remark";
}

std::string_view to_string(definition_state state) {
  using enum definition_state;
  return state == used       ? "used"
         : state == disabled ? "disabled"
         : state == unusable ? "unusable"
         : state == shadowed ? "shadowed"
                             : "itself";
}

std::string to_text(const config_problem& problem) {
  return fmt::format("{}{}{}: {}", problem.file, problem.entry.empty() ? "" : ": ", problem.entry,
                     problem.message);
}

bool server_catalogue::has_errors() const {
  return std::any_of(problems.begin(), problems.end(), [](const config_problem& problem) {
    return problem.kind == problem_kind::error;
  });
}

const server_entry* server_catalogue::find(std::string_view name) const {
  auto by = [&](auto member) {
    return std::find_if(servers.begin(), servers.end(),
                        [&](const server_entry& entry) { return entry.*member == name; });
  };
  auto found = by(&server_entry::name);
  if (found == servers.end()) {
    found = by(&server_entry::alias);
  }
  return found != servers.end() ? &*found : nullptr;
}

std::vector<std::string> server_catalogue::allowed_servers() const {
  std::vector<std::string> names;
  for (const auto& entry : servers) {
    if (allows_server(rules, entry.name).allowed) {
      names.push_back(entry.name);
    }
  }
  return names;
}

} // namespace bulkhead
