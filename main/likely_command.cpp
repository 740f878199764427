#include "main/likely_command.hpp"

#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "protocol/edit_distance.hpp"

namespace bulkhead {

std::string likely_command(const CLI::App& app) {
  const auto* innermost = &app;
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
  }
  auto words = app.remaining(true);
  std::vector<std::string_view> names;
  auto all = innermost->get_subcommands([](const CLI::App*) { return true; });
  for (const auto* each : all) {
    if (!each->get_group().empty()) {
      names.emplace_back(each->get_name());
    }
  }
  auto likely = words.empty() ? std::string_view{} : closest_name(words.front(), names);
  return likely.empty() ? std::string{} : fmt::format("Did you mean \"{}\"?\n", likely);
}

} // namespace bulkhead
