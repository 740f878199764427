#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/error.hpp"
#include "protocol/limits.hpp"
#include "protocol/oauth_resource.hpp"
#include "protocol/policy.hpp"
#include "protocol/settings.hpp"
#include "protocol/tls_files.hpp"

namespace bulkhead {

/// What is kept of a token: enough to know it again, too little to make it.
struct tenant_token {
  std::string id;     ///< for people, logs and `revoke`; no other of the tenant has it
  std::string sha256; ///< of the token, 64 hexadecimal digits in lower case
  std::optional<std::chrono::sys_seconds> expires; ///< the first moment at which it isn't valid

  friend bool operator==(const tenant_token&, const tenant_token&) = default;
};

/// What one tenant may use. Those that are also of `settings` come from there unless the file says
/// otherwise.
struct tenant_limits {
  std::uint32_t concurrent_runs = 8;
  std::uint32_t sessions = 8;            ///< kept interpreters
  std::uint64_t memory = 512 * mebibyte; ///< of a run, in bytes
  std::optional<double> cpus;            ///< of a run
  std::uint32_t pids = 128;              ///< of a run
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds max_timeout{120'000};
  std::optional<std::uint32_t> tool_calls;  ///< of a run
  std::uint64_t output = 64 * mebibyte;     ///< bytes kept of a run's output
  std::uint64_t artifacts = 256 * mebibyte; ///< bytes kept of all outputs and artifacts
  double requests_per_second = 20;          ///< over HTTP, on average
  std::uint32_t burst = 60;                 ///< so many requests at once
  std::optional<std::uint64_t>
      cpu_seconds_per_day; ///< of all runs of a day (UTC): their time times their CPUs

  friend bool operator==(const tenant_limits&, const tenant_limits&) = default;
};

struct tenant {
  std::string name; ///< see is_tenant_name; also the name of its folder
  std::vector<tenant_token> tokens;
  /// Globs that narrow what is configured: only these servers, and only these SERVER/TOOL.
  std::optional<std::vector<std::string>> servers;
  std::optional<std::vector<std::string>> tools;
  std::string image;
  tenant_limits limits;
  std::vector<std::string> shared = {}; ///< globs: which of the shared servers it may use

  friend bool operator==(const tenant&, const tenant&) = default;
};

/// Where to listen.
struct listen_address {
  std::string host = "127.0.0.1"; ///< numeric, IPv6 without brackets
  std::uint16_t port = 8765;      ///< 0: one that is free

  friend bool operator==(const listen_address&, const listen_address&) = default;
};

/// How many connections clients may have open.
struct connection_limits {
  std::uint32_t most = 512;
  std::uint32_t per_address = 256; ///< of one client's address or, of IPv6, network
  bool count_loopback = false;     ///< holds addresses of this machine, e.g. a proxy's, to it, too

  friend bool operator==(const connection_limits&, const connection_limits&) = default;
};

/// What `bulkhead.toml` says.
struct serve_config {
  listen_address listen;
  std::vector<std::string> hosts; ///< further names of this server, lower case, IPv6 in brackets
  std::optional<tls_files> tls;
  connection_limits connections;
  std::uint32_t concurrent_runs = 8;              ///< of all tenants together
  std::uint32_t queue = limits{}.admission_queue; ///< runs of a tenant that wait
  std::optional<oauth_resource> oauth;            ///< whose access tokens are believed, too
  std::optional<bool> ui;                         ///< see has_ui
  /// Where /metrics is, and all that /healthz and /readyz have to say: without a token, so for
  /// operators alone. Nothing: nowhere.
  std::optional<listen_address> operators;
  /// The file with the MCP servers that are run once for several tenants; empty: there are none.
  std::string shared_servers;
  std::vector<tenant> tenants;      ///< by name
  std::vector<std::string> remarks; ///< worth a warning, for people

  const tenant* find(std::string_view name) const;
  friend bool operator==(const serve_config&, const serve_config&) = default;
};

inline constexpr std::size_t largest_serve_config = mebibyte;

/// Reads the text of `file` (an absolute path, for errors, and for relative paths in it). `process`
/// has what holds where the file is silent. All that is wrong is found at once, each with line,
/// key, value and what is expected: invalid_argument; malformed when it is no TOML; too_large. A
/// key that nothing reads is an error, for it may be a misspelt limit.
tl::expected<serve_config, std::vector<error>>
read_serve_config(std::string_view text, const std::string& file, const settings& process);

/// `HOST:PORT`, HOST being numeric (IPv6 in brackets) or "localhost". Errors: invalid_argument.
expected<listen_address> parse_listen(std::string_view text);

/// One to 32 lower case letters, digits and `-`, which isn't the first: it becomes a folder.
bool is_tenant_name(std::string_view name);

/// One to 64 letters, digits, `-`, `_` and `.`, the first one a letter or digit.
bool is_token_id(std::string_view id);

/// Is it an address that only this machine reaches?
bool is_loopback(const listen_address& address);

/// The names under which requests may come: those configured, and those of the address.
std::vector<std::string> accepted_hosts(const serve_config& config);

/// Is there the web page? By default only where the address is loopback.
bool has_ui(const serve_config& config);

/// The settings of a tenant's engine: its own state folder, STATE_DIR/tenants/NAME, its image and
/// its limits.
settings settings_for(const settings& process, const tenant& one);

/// Adds what the tenant may use to the policy in force, which it can only narrow.
void add_rules(const tenant& one, policy& rules);

/// What another text of the file changes of a tenant that is in both.
struct tenant_change {
  std::string name;
  bool tokens = false; ///< that are valid
  bool rights = false; ///< servers and tools
  bool image = false;
  bool limits = false;
};

/// What another text of the file changes.
struct serve_change {
  std::vector<std::string> restart; ///< keys whose values count only after a restart, e.g. "listen"
  std::vector<std::string> at_once; ///< keys of the process that need none
  std::vector<std::string> added;   ///< tenants
  std::vector<std::string> removed; ///< tenants
  std::vector<tenant_change> changed;

  bool none() const {
    return restart.empty() && at_once.empty() && added.empty() && removed.empty() &&
           changed.empty();
  }
};

serve_change compare(const serve_config& before, const serve_config& after);

} // namespace bulkhead
