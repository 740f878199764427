#include <algorithm>
#include <filesystem>
#include <set>

#include "protocol/ascii.hpp"
#include "protocol/config_keys.hpp"
#include "protocol/oauth_resource_reader.hpp"
#include "protocol/serve_remarks.hpp"
#include "protocol/tenant_config.hpp"
#include "protocol/toml_fields.hpp"

namespace bulkhead {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view a_date = "a date without quotes, e.g. 2027-01-01, or a moment, e.g. "
                                    "2027-01-01T08:00:00Z (without a zone: UTC)";
constexpr std::string_view a_hash =
    "the SHA-256 of a token, 64 hexadecimal digits, as `bulkhead token new` writes it";

value_kind<bool> truth_value() {
  return {"true or false", [](std::string_view text) -> std::optional<bool> {
            return text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
          }};
}

value_kind<listen_address> listen_value() {
  return {"HOST:PORT with a numeric host or localhost, e.g. \"127.0.0.1:8765\" or \"[::1]:8765\"",
          [](std::string_view text) -> std::optional<listen_address> {
            auto address = parse_listen(text);
            return address ? std::optional(*address) : std::nullopt;
          }};
}

/// A file, from the folder of the configuration on.
value_kind<std::string> path_value(const std::string& configuration) {
  return {"the path of a file in PEM form",
          [configuration](std::string_view text) -> std::optional<std::string> {
            if (text.empty() || text.find('\0') != std::string_view::npos) {
              return std::nullopt;
            }
            auto folder = std::filesystem::path{configuration}.parent_path();
            return (folder / std::filesystem::path{text}).lexically_normal().string();
          }};
}

value_kind<std::uint64_t> cpu_seconds_value() {
  constexpr std::uint64_t most = 86'400ULL * 1024;
  return {fmt::format("whole seconds of processor time from 1 to {}, e.g. 3600", most),
          [](std::string_view text) -> std::optional<std::uint64_t> {
            auto number = parse_whole<std::uint64_t>(text);
            return number && *number >= 1 && *number <= most ? number : std::nullopt;
          }};
}

/// The moment of a date or time; nothing for anything else, or for a day that doesn't exist.
std::optional<std::chrono::sys_seconds> moment_of(const toml::node& node) {
  using namespace std::chrono;
  auto of = [](const toml::date& date, const toml::time& time,
               std::int64_t offset) -> std::optional<sys_seconds> {
    year_month_day day{year{static_cast<int>(date.year)}, month{date.month},
                       std::chrono::day{date.day}};
    if (!day.ok()) {
      return std::nullopt;
    }
    return sys_days{day} + hours{time.hour} + minutes{time.minute} + seconds{time.second} -
           minutes{offset};
  };
  if (const auto* date = node.as_date()) {
    return of(date->get(), {}, 0);
  }
  if (const auto* moment = node.as_date_time()) {
    const auto& value = moment->get();
    return of(value.date, value.time, value.offset ? value.offset->minutes : 0);
  }
  return std::nullopt;
}

/// What is wrong with a host name that requests may name; empty when nothing is.
std::string host_fault(std::string_view host) {
  auto allowed = [](char c) {
    auto lower = lower_case(c);
    return (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets ? parse_listen(fmt::format("{}:0", host)).has_value()
               : !host.empty() && std::all_of(host.begin(), host.end(), allowed)) {
    return {};
  }
  return "is no host: write its name alone, without scheme and port, e.g. \"mcp.example.org\"";
}

std::string pattern_fault(std::string_view pattern, bool of_tools) {
  bool control = std::any_of(pattern.begin(), pattern.end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  auto slash = pattern.find('/');
  bool tool = slash != std::string_view::npos && slash > 0 && slash + 1 < pattern.size();
  if (control || pattern.empty()) {
    return "names nothing";
  }
  if (of_tools && !tool) {
    return "names no tool: expected SERVER/TOOL, e.g. \"files/read_*\"";
  }
  if (!of_tools && slash != std::string_view::npos) {
    return "names a tool: it belongs into \"tools\", and a server's name here";
  }
  return {};
}

/// Reads one file.
class config_reader {
public:
  config_reader(const std::string& file, const settings& process)
      : findings{file}, process_{process} {}

  void read(const toml::table& root);

  serve_config result;
  toml_findings findings;

private:
  void read_tls(const toml::table& table);
  void read_tenants(const toml::table& table);
  void read_tenant(const toml::key& name, const toml::table& table);
  void read_limits(const toml::table* table, const std::string& path, tenant_limits& to);
  void read_timeouts(toml_fields& from, const std::string& path, tenant_limits& to);
  void read_token(const toml::node& member, const std::string& path, tenant& to);
  void read_oauth(const toml::table& table);
  void find_twins();

  const settings& process_;
  /// Where each token stands, in the order of the tenants and of their tokens.
  std::vector<toml::source_region> token_places_;
  std::vector<tenant> read_order_;
};

void config_reader::read(const toml::table& root) {
  toml_fields from{root, {}, findings};
  from.take("listen", result.listen, listen_value());
  std::optional<std::vector<std::string>> hosts;
  from.take_texts("hosts", "a list of host names", hosts, host_fault);
  for (const auto& host : hosts.value_or(std::vector<std::string>{})) {
    result.hosts.push_back(lower_case(host));
  }
  result.concurrent_runs = process_.concurrent_runs;
  from.take("concurrent_runs", result.concurrent_runs, concurrent_runs_value());
  if (const auto* table = from.take_table("tls")) {
    read_tls(*table);
  }
  if (const auto* table = from.take_table("connections")) {
    toml_fields connections{*table, "connections", findings};
    connections.take("most", result.connections.most, count_value(1, 100'000));
    connections.take("per_address", result.connections.per_address, count_value(1, 100'000));
    connections.take("count_loopback", result.connections.count_loopback, truth_value());
    connections.finish();
  }
  if (const auto* table = from.take_table("admission")) {
    toml_fields admission{*table, "admission", findings};
    admission.take("queue", result.queue, count_value(1, 100'000));
    admission.finish();
  }
  if (const auto* table = from.take_table("ui")) {
    toml_fields ui{*table, "ui", findings};
    ui.take("enabled", result.ui, truth_value());
    ui.finish();
  }
  if (const auto* table = from.take_table("operator")) {
    toml_fields operators{*table, "operator", findings};
    listen_address address;
    if (operators.take("listen", address, listen_value())) {
      result.operators = address;
    }
    operators.finish();
  }
  if (const auto* table = from.take_table("tenants")) {
    read_tenants(*table);
  }
  if (const auto* table = from.take_table("oauth")) {
    read_oauth(*table);
  }
  from.finish();
  find_twins();
  result.tenants = std::move(read_order_);
  add_remarks(result, findings.file());
}

void config_reader::read_tls(const toml::table& table) {
  toml_fields from{table, "tls", findings};
  tls_files files;
  bool both = from.take("certificate", files.certificate, path_value(findings.file()));
  both = from.take("key", files.key, path_value(findings.file())) && both;
  from.finish();
  if (!both && (!table.contains("certificate") || !table.contains("key"))) {
    from.refuse("certificate", table, " and tls.key belong together: name both files");
  }
  if (both) {
    result.tls = files;
  }
}

void config_reader::read_tenants(const toml::table& table) {
  for (const auto& [key, node] : table) {
    auto name = key.str();
    if (!is_tenant_name(name)) {
      findings.refuse(key.source(),
                      fmt::format("\"{}\" can't be a tenant's name: expected 1 to 32 lower case "
                                  "letters, digits and -, e.g. [tenants.team-a]",
                                  shown_name(name)));
    } else if (const auto* one = node.as_table()) {
      read_tenant(key, *one);
    } else {
      findings.refuse(key.source(),
                      fmt::format("tenants.{} must be a table: write [tenants.{}] on a line, and "
                                  "its keys below it",
                                  name, name));
    }
  }
}

void config_reader::read_tenant(const toml::key& name, const toml::table& table) {
  tenant one;
  one.name = name.str();
  one.image = process_.image;
  auto path = fmt::format("tenants.{}", one.name);
  toml_fields from{table, path, findings};
  from.take_list("tokens", R"(a list, e.g. [{ id = "laptop", sha256 = "…" }])",
                 [&](const toml::node& member) { read_token(member, path + ".tokens", one); });
  from.take_texts("servers", "a list of servers, globs", one.servers,
                  [](std::string_view text) { return pattern_fault(text, false); });
  from.take_texts("tools", "a list of SERVER/TOOL, globs", one.tools,
                  [](std::string_view text) { return pattern_fault(text, true); });
  from.take("image", one.image, image_value());
  read_limits(from.take_table("limits"), path + ".limits", one.limits);
  from.finish();
  read_order_.push_back(std::move(one));
}

void config_reader::read_limits(const toml::table* table, const std::string& path,
                                tenant_limits& to) {
  to.concurrent_runs = result.concurrent_runs;
  to.sessions = process_.sessions;
  to.memory = process_.memory;
  to.cpus = process_.cpus;
  to.pids = process_.pids;
  to.timeout = process_.timeout;
  to.max_timeout = process_.max_timeout;
  to.output = process_.spill;
  to.artifacts = process_.artifacts;
  if (table == nullptr) {
    return;
  }
  toml_fields from{*table, path, findings};
  from.take("concurrent_runs", to.concurrent_runs, concurrent_runs_value());
  from.take("sessions", to.sessions, sessions_value());
  from.take("memory", to.memory, memory_value());
  from.take("cpus", to.cpus, cpus_value());
  from.take("pids", to.pids, pids_value());
  read_timeouts(from, path, to);
  from.take("tool_calls", to.tool_calls, count_value(0, 100'000));
  from.take("output", to.output, kept_bytes_value("\"64m\" or \"1g\"", "to keep no output"));
  from.take("artifacts", to.artifacts, kept_bytes_value("\"256m\" or \"2g\"", "to keep nothing"));
  from.take("requests_per_second", to.requests_per_second,
            decimal_value("requests per second", 0.01, 100'000, "20"));
  from.take("burst", to.burst, count_value(1, 1'000'000));
  from.take("cpu_seconds_per_day", to.cpu_seconds_per_day, cpu_seconds_value());
  from.finish();
}

void config_reader::read_timeouts(toml_fields& from, const std::string& path, tenant_limits& to) {
  bool chosen = from.take("timeout", to.timeout, timeout_value());
  bool bounded = from.take("max_timeout", to.max_timeout, timeout_value());
  if (to.timeout <= to.max_timeout) {
    return;
  }
  auto seconds = [](milliseconds time) { return static_cast<double>(time.count()) / 1000; };
  if (chosen && bounded) {
    from.refuse("timeout", *from.take("timeout"),
                fmt::format(" is {} s, more than max_timeout, {} s: lower the first or raise the "
                            "second",
                            seconds(to.timeout), seconds(to.max_timeout)));
    return;
  }
  // One of the two comes from the process, which another start may configure otherwise.
  result.remarks.push_back(
      fmt::format("{0}: the timeout of {1} s is over the greatest, {2} s: runs get {2} s", path,
                  seconds(to.timeout), seconds(to.max_timeout)));
  to.timeout = to.max_timeout;
}

void config_reader::read_token(const toml::node& member, const std::string& path, tenant& to) {
  const auto* table = member.as_table();
  if (table == nullptr) {
    findings.refuse(member.source(),
                    path + R"( has what is no token: expected { id = "laptop", sha256 = "…" })");
    return;
  }
  tenant_token token;
  toml_fields from{*table, path, findings};
  const auto* id = from.take("id");
  const auto* hash = from.take("sha256");
  const auto* expires = from.take("expires");
  from.finish();
  token.id = id != nullptr ? id->value_or(std::string{}) : std::string{};
  bool usable = true;
  auto refuse = [&](std::string_view key, const toml::node* where, std::string_view how) {
    from.refuse(key, where != nullptr ? *where : member, how);
    usable = false;
  };
  if (!is_token_id(token.id)) {
    refuse("id", id, ": expected 1 to 64 letters, digits, -, _ and ., e.g. \"laptop\"");
  }
  // What stands there is never shown: it may be the token itself.
  token.sha256 = lower_case(hash != nullptr ? hash->value_or(std::string{}) : std::string{});
  if (token.sha256.size() != 64 ||
      token.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
    refuse("sha256", hash, fmt::format(" of a token isn't one: expected {}", a_hash));
  }
  if (expires != nullptr) {
    token.expires = moment_of(*expires);
    if (!token.expires) {
      refuse("expires", expires, fmt::format(": expected {}", a_date));
    }
  }
  if (usable) {
    to.tokens.push_back(std::move(token));
    token_places_.push_back(member.source());
  }
}

void config_reader::read_oauth(const toml::table& table) {
  result.oauth = read_oauth_resource(table, findings);
  for (const auto& issuer : result.oauth->issuers) {
    auto same = [&](const tenant& one) { return one.name == issuer.tenant; };
    if (!issuer.tenant.empty() && std::none_of(read_order_.begin(), read_order_.end(), same)) {
      findings.refuse(table.source(),
                      fmt::format("oauth.issuers names the tenant \"{}\", and there "
                                  "is no [tenants.{}]",
                                  issuer.tenant, issuer.tenant));
    }
  }
}

void config_reader::find_twins() {
  std::set<std::string_view> hashes;
  auto place = token_places_.begin();
  for (const auto& one : read_order_) {
    std::set<std::string_view> ids;
    for (const auto& token : one.tokens) {
      if (!ids.insert(token.id).second) {
        findings.refuse(*place, fmt::format("tenants.{} has two tokens \"{}\"; give one another id",
                                            one.name, token.id));
      }
      if (!hashes.insert(token.sha256).second) {
        findings.refuse(*place, fmt::format("the sha256 of token \"{}\" of tenants.{} is also "
                                            "another one's: whose would it be? Make a new one "
                                            "with `bulkhead token new`",
                                            token.id, one.name));
      }
      ++place;
    }
  }
}

} // namespace

tl::expected<serve_config, std::vector<error>>
read_serve_config(std::string_view text, const std::string& file, const settings& process) {
  auto root = parse_toml(text, file, largest_serve_config);
  if (!root) {
    return tl::unexpected(std::vector<error>{root.error()});
  }
  config_reader reader{file, process};
  reader.read(*root);
  if (!reader.findings.errors().empty()) {
    return tl::unexpected(std::move(reader.findings.errors()));
  }
  return std::move(reader.result);
}

} // namespace bulkhead
