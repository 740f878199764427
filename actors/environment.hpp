#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <spdlog/logger.h>

#include "actors/current_client.hpp"
#include "actors/live_settings.hpp"
#include "actors/memory_budget.hpp"
#include "protocol/limits.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

class activity;

/// Tells nobody anything.
std::shared_ptr<activity> no_activity();

/// What the actors need of the world around them, injected so that tests can script it. Time that
/// passes comes from the actor clock; processes from `process_host`.
struct environment {
  live_settings config;
  limits bounds;

  /// Whose engine this is, where a process has several (lower case letters, digits and hyphens);
  /// empty where it has one.
  std::string tenant;

  /// This engine among others of the same account: 16 hex digits. Its lock file tells the living
  /// from the dead.
  std::string instance;

  /// The folder of all instances of this account (0700), e.g. /run/user/1000/bulkhead.
  std::string runtime_dir;

  /// The account's home folder.
  std::string home;

  /// The canonical path of the running executable; empty in tests.
  std::string executable;

  /// The process environment that children may inherit from, looked up by name.
  environment_lookup variable;

  /// 128 random bits as 32 hex digits.
  std::function<std::string()> new_handle;

  /// Counts up, for ids that are unique within the process.
  std::function<std::uint64_t()> next_serial;

  /// The date and time, for people.
  std::function<std::chrono::system_clock::time_point()> wall_clock;

  /// All bytes held for others.
  std::shared_ptr<memory_budget> budget;

  /// The client, where this process has only one: what upstream servers may ask of it.
  std::shared_ptr<current_client> client = std::make_shared<current_client>();

  std::shared_ptr<spdlog::logger> log;

  /// What operators get to see of what goes on; never null.
  std::shared_ptr<bulkhead::activity> activity = no_activity();
};

using environment_ptr = std::shared_ptr<const environment>;

/// A minimal environment for child processes: PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TZ, TMPDIR,
/// XDG_* and the proxy variables as they are in ours, as NAME=VALUE.
std::vector<std::string> minimal_environment(const environment& env);

} // namespace bulkhead
