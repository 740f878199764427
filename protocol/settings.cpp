#include "protocol/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/edit_distance.hpp"
#include "protocol/setting_values.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double longest_timeout_seconds = 86'400;

std::optional<bool> parse_boolean(std::string_view text) {
  auto value = lower_case(text);
  if (value == "1" || value == "true" || value == "yes") {
    return true;
  }
  if (value == "0" || value == "false" || value == "no") {
    return false;
  }
  return std::nullopt;
}

struct user_ids {
  std::uint32_t uid;
  std::uint32_t gid;
};

std::optional<user_ids> parse_user(std::string_view text) {
  auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  // The largest id is reserved: chown takes it for "leave as it is".
  constexpr std::uint32_t largest = std::numeric_limits<std::uint32_t>::max() - 1;
  auto uid = parse_whole<std::uint32_t>(text.substr(0, colon));
  auto gid = parse_whole<std::uint32_t>(text.substr(colon + 1));
  if (!uid || !gid || *uid == 0 || *gid == 0 || *uid > largest || *gid > largest) {
    return std::nullopt;
  }
  return user_ids{*uid, *gid};
}

/// "2" or "2:8".
std::optional<pool_sizes> parse_pool(std::string_view text) {
  constexpr std::uint32_t most = 256;
  auto colon = text.find(':');
  auto floor = parse_whole<std::uint32_t>(text.substr(0, colon));
  auto ceiling =
      colon == std::string_view::npos ? floor : parse_whole<std::uint32_t>(text.substr(colon + 1));
  if (!floor || !ceiling || *floor > *ceiling || *ceiling > most) {
    return std::nullopt;
  }
  return pool_sizes{*floor, *ceiling, *floor > 0};
}

bool is_program(std::string_view text, std::initializer_list<std::string_view> names) {
  return text.front() == '/' || std::find(names.begin(), names.end(), text) != names.end();
}

/// Takes variables from an environment and gathers what is wrong with them.
class reader {
public:
  explicit reader(const environment_lookup& environment) : environment_(environment) {}

  /// The variable's value; one that is set but empty counts as unset, since client programs'
  /// settings often can't leave a variable out.
  std::optional<std::string> value(std::string_view name) const {
    auto found = environment_(name);
    return found && !found->empty() ? found : std::nullopt;
  }

  void refuse(std::string_view name, std::string_view value, std::string_view expectation) {
    errors_.push_back({errc::invalid_argument, fmt::format("{}=\"{}\" can't be used: expected {}",
                                                           name, shown_value(value), expectation)});
  }
  void refuse(std::string message) {
    errors_.push_back({errc::invalid_argument, std::move(message)});
  }

  /// Stores what `parse` (text → optional) makes of the variable; true if it was set and usable.
  template <class T, class Parse>
  bool take(std::string_view name, T& target, std::string_view expectation, Parse parse) {
    auto text = value(name);
    if (!text) {
      return false;
    }
    auto parsed = parse(std::string_view(*text));
    if (!parsed) {
      refuse(name, *text, expectation);
      return false;
    }
    target = std::move(*parsed);
    return true;
  }

  void take_flag(std::string_view name, bool& target) {
    take(name, target, "1, 0, true, false, yes or no", parse_boolean);
  }

  template <class T, class Value>
  bool take(std::string_view name, T& target, const value_kind<Value>& kind) {
    return take(name, target, kind.expectation, kind.parse);
  }

  std::vector<error>& errors() { return errors_; }

private:
  const environment_lookup& environment_;
  std::vector<error> errors_;
};

void read_runtime(reader& from, settings& to) {
  from.take("MCP_BRIDGE_RUNTIME", to.runtime, "podman, docker, oci or an absolute path",
            [](std::string_view text) -> std::optional<std::string> {
              return is_program(text, {"podman", "docker", "oci"})
                         ? std::optional(std::string(text))
                         : std::nullopt;
            });
  from.take("MCP_BRIDGE_OCI_RUNTIME", to.oci_runtime, "crun, runc, runsc or an absolute path",
            [](std::string_view text) -> std::optional<std::string> {
              return is_program(text, {"crun", "runc", "runsc"}) ? std::optional(std::string(text))
                                                                 : std::nullopt;
            });
  from.take("MCP_BRIDGE_DRIVER", to.driver, "cli or rest",
            [](std::string_view text) -> std::optional<std::string> {
              return text == "cli" || text == "rest" ? std::optional(std::string(text))
                                                     : std::nullopt;
            });
  from.take("MCP_BRIDGE_IMAGE", to.image, image_value());
  from.take("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", to.runtime_idle_timeout,
            "whole seconds from 0 to 604800", [](std::string_view text) -> std::optional<seconds> {
              auto number = parse_whole<std::uint32_t>(text);
              return number && *number <= 604'800 ? std::optional(seconds(*number)) : std::nullopt;
            });
}

void read_timeouts(reader& from, settings& to) {
  bool chosen = from.take("MCP_BRIDGE_TIMEOUT", to.timeout, timeout_value());
  from.take("MCP_BRIDGE_MAX_TIMEOUT", to.max_timeout, timeout_value());
  if (to.timeout <= to.max_timeout) {
    return;
  }
  if (!chosen) {
    // Only our default was over it.
    to.remarks.push_back(fmt::format(
        "MCP_BRIDGE_MAX_TIMEOUT is {0} s, less than the default MCP_BRIDGE_TIMEOUT of {1} s: runs "
        "get {0} s",
        static_cast<double>(to.max_timeout.count()) / 1000,
        static_cast<double>(to.timeout.count()) / 1000));
    to.timeout = to.max_timeout;
    return;
  }
  from.refuse(
      fmt::format("MCP_BRIDGE_TIMEOUT is {} s, more than MCP_BRIDGE_MAX_TIMEOUT, {} s: lower "
                  "the first or raise the second",
                  static_cast<double>(to.timeout.count()) / 1000,
                  static_cast<double>(to.max_timeout.count()) / 1000));
}

void read_limits(reader& from, settings& to) {
  from.take("MCP_BRIDGE_MEMORY", to.memory, memory_value());
  from.take("MCP_BRIDGE_PIDS", to.pids, pids_value());
  from.take("MCP_BRIDGE_CPUS", to.cpus, cpus_value());
  user_ids user{to.container_uid, to.container_gid};
  from.take("MCP_BRIDGE_CONTAINER_USER", user,
            "UID:GID as two numbers, neither of them 0 (root), e.g. 65534:65534", parse_user);
  to.container_uid = user.uid;
  to.container_gid = user.gid;
  from.take("MCP_BRIDGE_CONCURRENT_RUNS", to.concurrent_runs, concurrent_runs_value());
  from.take("MCP_BRIDGE_SESSIONS", to.sessions, sessions_value());
  from.take("MCP_BRIDGE_SESSION_IDLE", to.session_idle, "whole seconds from 1 to 86400, e.g. 900",
            [](std::string_view text) -> std::optional<std::chrono::seconds> {
              auto number = parse_whole<std::uint32_t>(text);
              return number && *number >= 1 && *number <= longest_timeout_seconds
                         ? std::optional(std::chrono::seconds{*number})
                         : std::nullopt;
            });
  from.take(
      "MCP_BRIDGE_POOL", to.pool,
      "how many sandboxes to keep booted, FLOOR or FLOOR:CEILING up to 256, e.g. 2 or 0:8; 0: none",
      parse_pool);
}

void read_store(reader& from, settings& to) {
  from.take("MCP_BRIDGE_SPILL", to.spill, kept_bytes_value("64m or 1g", "to keep no output"));
  from.take("MCP_BRIDGE_ARTIFACTS", to.artifacts,
            kept_bytes_value("256m or 2g", "to keep nothing"));
}

template <class T, std::size_t N>
auto choice(const std::array<std::pair<std::string_view, T>, N>& names) {
  return [&names](std::string_view text) -> std::optional<T> {
    auto wanted = lower_case(text);
    auto found = std::find_if(names.begin(), names.end(),
                              [&](const auto& entry) { return entry.first == wanted; });
    return found != names.end() ? std::optional(found->second) : std::nullopt;
  };
}

constexpr std::array<std::pair<std::string_view, output_mode>, 3> output_modes = {{
    {"compact", output_mode::compact},
    {"toon", output_mode::toon},
    {"json", output_mode::json},
}};

constexpr std::array<std::pair<std::string_view, ledger_mode>, 3> ledger_modes = {{
    {"off", ledger_mode::off},
    {"hashes", ledger_mode::hashes},
    {"full", ledger_mode::full},
}};

constexpr std::array<std::pair<std::string_view, log_level>, 7> log_levels = {{
    {"trace", log_level::trace},
    {"debug", log_level::debug},
    {"info", log_level::info},
    {"warning", log_level::warning},
    {"warn", log_level::warning},
    {"error", log_level::error},
    {"off", log_level::off},
}};

constexpr std::array<std::pair<std::string_view, log_format>, 2> log_formats = {{
    {"text", log_format::text},
    {"json", log_format::json},
}};

void read_ledger(reader& from, settings& to) {
  from.take("MCP_BRIDGE_LEDGER", to.ledger, "off, hashes or full", choice(ledger_modes));
  from.take("MCP_BRIDGE_LEDGER_DAYS", to.ledger_days, count_value(1, 3'650));
}

void read_paths(reader& from, settings& to, std::string_view home) {
  auto state_dir = from.value("MCP_BRIDGE_STATE_DIR").value_or("~/MCPs");
  to.state_dir = expand_home(state_dir, home);
  if (home.empty() && state_dir.starts_with('~')) {
    from.refuse("the account's home folder is unknown: set HOME, or MCP_BRIDGE_STATE_DIR to an "
                "absolute path");
  } else if (to.state_dir.front() != '/') {
    from.refuse("MCP_BRIDGE_STATE_DIR", state_dir, "an absolute path, or one that starts with ~/");
  }
  to.servers_config = expand_home(from.value("MCP_SERVERS_CONFIG").value_or(""), home);
}

} // namespace

tl::expected<settings, std::vector<error>> read_settings(const environment_lookup& environment,
                                                         std::string_view home) {
  settings result;
  reader from(environment);
  read_runtime(from, result);
  read_timeouts(from, result);
  read_limits(from, result);
  read_store(from, result);
  read_ledger(from, result);
  read_paths(from, result, home);
  from.take("MCP_BRIDGE_OUTPUT_MODE", result.output, "compact, toon or json", choice(output_modes));
  from.take("MCP_BRIDGE_LOG_LEVEL", result.log, "trace, debug, info, warning, error or off",
            choice(log_levels));
  from.take("MCP_BRIDGE_LOG_FORMAT", result.log_as, "text or json", choice(log_formats));
  from.take_flag("MCP_BRIDGE_ALLOW_SELF_SERVER", result.allow_self_server);
  from.take_flag("MCP_BRIDGE_AUTOLOAD", result.autoload);
  from.take_flag("MCP_BRIDGE_ALLOW_ROOTFUL", result.allow_rootful);
  from.take_flag("MCP_BRIDGE_STRICT", result.strict);
  from.take_flag("MCP_BRIDGE_OUTPUT_SCHEMA", result.output_schema);
  if (!from.errors().empty()) {
    return tl::unexpected(std::move(from.errors()));
  }
  return result;
}

std::vector<std::string> unknown_variables(const std::vector<std::string>& names) {
  static const std::vector<std::string_view> known = {"MCP_BRIDGE_RUNTIME",
                                                      "MCP_BRIDGE_OCI_RUNTIME",
                                                      "MCP_BRIDGE_DRIVER",
                                                      "MCP_BRIDGE_IMAGE",
                                                      "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT",
                                                      "MCP_BRIDGE_TIMEOUT",
                                                      "MCP_BRIDGE_MAX_TIMEOUT",
                                                      "MCP_BRIDGE_MEMORY",
                                                      "MCP_BRIDGE_PIDS",
                                                      "MCP_BRIDGE_CPUS",
                                                      "MCP_BRIDGE_CONTAINER_USER",
                                                      "MCP_BRIDGE_STATE_DIR",
                                                      "MCP_BRIDGE_CONCURRENT_RUNS",
                                                      "MCP_BRIDGE_SESSIONS",
                                                      "MCP_BRIDGE_SESSION_IDLE",
                                                      "MCP_BRIDGE_POOL",
                                                      "MCP_BRIDGE_SPILL",
                                                      "MCP_BRIDGE_ARTIFACTS",
                                                      "MCP_BRIDGE_LEDGER",
                                                      "MCP_BRIDGE_LEDGER_DAYS",
                                                      "MCP_BRIDGE_OUTPUT_MODE",
                                                      "MCP_BRIDGE_OUTPUT_SCHEMA",
                                                      "MCP_BRIDGE_LOG_LEVEL",
                                                      "MCP_BRIDGE_SERVE_CONFIG",
                                                      "MCP_BRIDGE_LOG_FORMAT",
                                                      "MCP_BRIDGE_STRICT",
                                                      "MCP_BRIDGE_AUTOLOAD",
                                                      "MCP_BRIDGE_ALLOW_SELF_SERVER",
                                                      "MCP_BRIDGE_ALLOW_ROOTFUL"};
  constexpr std::string_view prefix = "MCP_BRIDGE_";
  std::vector<std::string_view> endings;
  endings.reserve(known.size());
  for (auto name : known) {
    endings.push_back(name.substr(prefix.size()));
  }
  std::vector<std::string> result;
  for (const auto& name : names) {
    if (!name.starts_with(prefix) || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    auto likely = name == "MCP_BRIDGE_SERVERS_CONFIG"
                      ? std::string{"MCP_SERVERS_CONFIG"}
                      : std::string{closest_name(name.substr(prefix.size()), endings)};
    if (!likely.empty() && !likely.starts_with("MCP_")) {
      likely.insert(0, prefix);
    }
    result.push_back(fmt::format("nothing reads the variable {}{}", shown_value(name),
                                 likely.empty() ? "" : fmt::format("; did you mean {}?", likely)));
  }
  return result;
}

expected<std::uint64_t> parse_size(std::string_view text) {
  auto refused = [&] {
    return fail(
        errc::invalid_argument,
        fmt::format("\"{}\" is no size: expected a number of bytes, or one followed by k, m, "
                    "g or t, e.g. 512m",
                    shown_value(text)));
  };
  auto number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  auto number = parse_decimal(text.substr(0, number_end));
  auto unit = lower_case(text.substr(number_end));
  // Both engines take "m", "mb" and "mib" for the same binary multiple.
  for (std::string_view ending : {"ib", "b"}) {
    if (unit.size() == ending.size() + 1 && unit.ends_with(ending)) {
      unit.resize(1);
    }
  }
  constexpr std::string_view units = "bkmgt";
  auto power = unit.empty() ? 0 : units.find(unit);
  if (!number || unit.size() > 1 || power == std::string_view::npos) {
    return refused();
  }
  double bytes = std::floor(std::ldexp(*number, static_cast<int>(10 * power)));
  constexpr double largest_exact = 9007199254740992.0; // 2^53, 8 PiB
  if (bytes >= largest_exact) {
    return refused();
  }
  return static_cast<std::uint64_t>(bytes);
}

} // namespace bulkhead
