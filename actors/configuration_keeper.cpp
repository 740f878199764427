#include "actors/configuration_keeper.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

namespace bulkhead {

namespace {

using names = std::vector<std::string_view>;

std::string listed(std::string_view what, const names& which) {
  return which.empty() ? std::string{} : fmt::format("; {}: {}", what, fmt::join(which, ", "));
}

/// Says what is new among the problems.
void log_problems(spdlog::logger& log, const server_catalogue& before,
                  const server_catalogue& after) {
  for (const auto& problem : after.problems) {
    if (std::find(before.problems.begin(), before.problems.end(), problem) ==
        before.problems.end()) {
      log.log(problem.kind == problem_kind::error ? spdlog::level::warn : spdlog::level::info, "{}",
              to_text(problem));
    }
  }
}

} // namespace

std::string describe_change(const server_catalogue& before, const server_catalogue& after) {
  names added;
  names changed;
  names removed;
  for (const auto& entry : after.servers) {
    const auto* earlier = before.find(entry.name);
    if (earlier == nullptr || earlier->name != entry.name) {
      added.emplace_back(entry.name);
    } else if (*earlier != entry) {
      changed.emplace_back(entry.name);
    }
  }
  for (const auto& entry : before.servers) {
    const auto* later = after.find(entry.name);
    if (later == nullptr || later->name != entry.name) {
      removed.emplace_back(entry.name);
    }
  }
  return fmt::format("the configuration has changed: {} MCP servers{}{}{}{}", after.servers.size(),
                     listed("new", added), listed("changed", changed), listed("gone", removed),
                     before.rules == after.rules ? "" : "; the policy is another");
}

configuration_keeper_state::configuration_keeper_state(configuration_keeper_actor::pointer self)
    : self{self} {}

void configuration_keeper_state::read() {
  auto reading = context.read();
  context.watch(std::move(reading.dependencies));
  auto before = context.configured->get();
  if (*reading.catalogue == *before) {
    return;
  }
  auto& log = *context.env->log;
  log.info("{}", describe_change(*before, *reading.catalogue));
  log_problems(log, *before, *reading.catalogue);
  // Rights first: whoever calls a tool from now on sees them.
  context.configured->set(reading.catalogue);
  self->send(context.registry(), catalogue_atom::value, reading.catalogue);
}

configuration_keeper_actor::behavior_type configuration_keeper_state::make_behavior() {
  return {
      [this](catalogue_atom) { read(); },
  };
}

configuration_keeper_actor::behavior_type
configuration_keeper(configuration_keeper_actor::stateful_pointer<configuration_keeper_state> self,
                     keeper_context context) {
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

} // namespace bulkhead
