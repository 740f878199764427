#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/ledger_record.hpp"
#include "protocol/limits.hpp"
#include "protocol/run_answer.hpp"

namespace bulkhead {

enum class log_level : std::uint8_t { trace, debug, info, warning, error, off };
enum class log_format : std::uint8_t { text, json };

/// How many booted sandboxes wait for their run (see actors/sandbox_pool.hpp).
struct pool_sizes {
  std::uint32_t floor = 2;   ///< at least, once a first run has shown that there is use for them
  std::uint32_t ceiling = 8; ///< at most, however many runs come at once; 0: no pool
  bool from_start = false;   ///< the floor is kept before the first run, too, and for ever
};

/// The value of MCP_BRIDGE_RUNTIME that stands for the OCI runtime itself, without an engine's
/// command.
inline constexpr std::string_view oci_driver = "oci";

/// What `MCP_BRIDGE_*` configures. Defaults are those documented in README.md.
struct settings {
  /// MCP_BRIDGE_RUNTIME: "podman", "docker", a path, "oci" (the OCI runtime without an engine's
  /// command; the image comes from podman's store), or empty: find an engine.
  std::string runtime;
  std::string oci_runtime; ///< MCP_BRIDGE_OCI_RUNTIME: "crun", "runc", a path, or empty: find one
  std::string driver;      ///< MCP_BRIDGE_DRIVER: "cli", "rest", or empty: what suits the host
  std::string image = "localhost/bulkhead-sandbox:latest"; ///< MCP_BRIDGE_IMAGE
  std::chrono::milliseconds timeout{30'000}; ///< MCP_BRIDGE_TIMEOUT, seconds, fractions allowed
  std::chrono::milliseconds max_timeout{120'000}; ///< MCP_BRIDGE_MAX_TIMEOUT, seconds
  std::uint64_t memory = 512 * mebibyte;          ///< MCP_BRIDGE_MEMORY: 512m, 1g, bytes
  std::uint32_t pids = 128;                       ///< MCP_BRIDGE_PIDS
  std::optional<double> cpus;                     ///< MCP_BRIDGE_CPUS
  std::uint32_t container_uid = 65534;            ///< MCP_BRIDGE_CONTAINER_USER: UID:GID, never 0
  std::uint32_t container_gid = 65534;
  std::chrono::seconds runtime_idle_timeout{300}; ///< MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT
  std::string state_dir;                          ///< MCP_BRIDGE_STATE_DIR, default ~/MCPs
  std::string servers_config;                     ///< MCP_SERVERS_CONFIG: one more file
  bulkhead::output_mode output = bulkhead::output_mode::compact; ///< MCP_BRIDGE_OUTPUT_MODE
  bulkhead::log_level log = bulkhead::log_level::info;           ///< MCP_BRIDGE_LOG_LEVEL
  bool allow_self_server = false;                                ///< MCP_BRIDGE_ALLOW_SELF_SERVER
  bool autoload = false; ///< MCP_BRIDGE_AUTOLOAD: servers that code names are loaded on first use
  bool allow_rootful = false;             ///< MCP_BRIDGE_ALLOW_ROOTFUL
  bool strict = false;                    ///< MCP_BRIDGE_STRICT: refuse when a limit isn't enforced
  std::uint32_t concurrent_runs = 8;      ///< MCP_BRIDGE_CONCURRENT_RUNS
  std::uint32_t sessions = 8;             ///< MCP_BRIDGE_SESSIONS: kept interpreters; 0: none
  std::chrono::seconds session_idle{900}; ///< MCP_BRIDGE_SESSION_IDLE: then it ends
  pool_sizes pool;                        ///< MCP_BRIDGE_POOL: FLOOR or FLOOR:CEILING; 0: no pool
  std::uint64_t spill = 64 * mebibyte;    ///< MCP_BRIDGE_SPILL: output kept of one run; 0: none
  std::uint64_t artifacts = 256 * mebibyte; ///< MCP_BRIDGE_ARTIFACTS: all that is kept; 0: nothing
  ledger_mode ledger = ledger_mode::hashes; ///< MCP_BRIDGE_LEDGER: off, hashes or full
  std::uint32_t ledger_days = 30;           ///< MCP_BRIDGE_LEDGER_DAYS: then its records go
  /// MCP_BRIDGE_OUTPUT_SCHEMA: the tool's definition has its output schema, which some hosts put
  /// into a model's context.
  bool output_schema = false;
  bulkhead::log_format log_as = bulkhead::log_format::text; ///< MCP_BRIDGE_LOG_FORMAT
  std::vector<std::string> remarks;                         ///< worth a warning, for people
};

/// Looks a variable up in an environment.
using environment_lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// Reads the settings; every bad value is one error that names the variable, the value and what is
/// expected. A variable that is set but empty counts as unset. A `timeout` over `max_timeout` is an
/// error, but the default gives way to a smaller maximum, which is a remark. `home` is the
/// account's home folder.
tl::expected<settings, std::vector<error>> read_settings(const environment_lookup& environment,
                                                         std::string_view home);

/// For each of these names of variables that starts with MCP_BRIDGE_ and isn't known, a sentence
/// that says so, with what it may have been meant to be.
std::vector<std::string> unknown_variables(const std::vector<std::string>& names);

/// "512m", "1g", "64k", "1.5gib", "1048576" → bytes (binary multiples, as podman reads them), below
/// 2^53. Errors: invalid_argument.
expected<std::uint64_t> parse_size(std::string_view text);

} // namespace bulkhead
