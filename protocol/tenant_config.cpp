#include "protocol/tenant_config.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/setting_values.hpp"

namespace bulkhead {

namespace {

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_numeric(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(family, host.c_str(), address.data()) == 1;
}

/// The numeric host in what stands before the port.
std::optional<std::string> numeric_host(std::string_view text) {
  if (lower_case(text) == "localhost") {
    return "127.0.0.1";
  }
  bool brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string host{brackets ? text.substr(1, text.size() - 2) : text};
  return is_numeric(brackets ? AF_INET6 : AF_INET, host) ? std::optional(host) : std::nullopt;
}

bool is_everywhere(const listen_address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

std::string named(const tenant& one) {
  return fmt::format("tenant \"{}\"", one.name);
}

void add_list(const std::optional<std::vector<std::string>>& list, const std::string& where,
              policy& rules) {
  if (!list) {
    return;
  }
  // A list of its own, which has to name what the others name, too.
  rules.allow_files.push_back(where);
  for (const auto& pattern : *list) {
    rules.allow.emplace_back(pattern, where);
  }
}

tenant_change compare_tenants(const tenant& before, const tenant& after) {
  tenant_change result{after.name};
  result.tokens = before.tokens != after.tokens;
  result.rights = before.servers != after.servers || before.tools != after.tools;
  result.image = before.image != after.image;
  result.limits = before.limits != after.limits;
  return result;
}

} // namespace

const tenant* serve_config::find(std::string_view name) const {
  auto found = std::find_if(tenants.begin(), tenants.end(),
                            [&](const tenant& each) { return each.name == name; });
  return found != tenants.end() ? &*found : nullptr;
}

expected<listen_address> parse_listen(std::string_view text) {
  auto colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    auto host = numeric_host(text.substr(0, colon));
    auto port = parse_whole<std::uint16_t>(text.substr(colon + 1));
    if (host && port) {
      return listen_address{*host, *port};
    }
  }
  return fail(errc::invalid_argument,
              fmt::format("\"{}\" is no address to listen on: expected HOST:PORT with a numeric "
                          "host or localhost, e.g. 127.0.0.1:8765, 0.0.0.0:8765 or [::1]:8765",
                          shown_value(text)));
}

bool is_tenant_name(std::string_view name) {
  constexpr std::size_t longest = 32;
  auto allowed = [](char c) { return is_lower_or_digit(c) || c == '-'; };
  return !name.empty() && name.size() <= longest && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

bool is_token_id(std::string_view id) {
  constexpr std::size_t longest = 64;
  auto plain = [](char c) { return is_lower_or_digit(lower_case(c)); };
  auto allowed = [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; };
  return !id.empty() && id.size() <= longest && plain(id.front()) &&
         std::all_of(id.begin(), id.end(), allowed);
}

bool is_loopback(const listen_address& address) {
  return address.host == "::1" || address.host.starts_with("127.");
}

std::vector<std::string> accepted_hosts(const serve_config& config) {
  auto result = config.hosts;
  if (is_loopback(config.listen) || is_everywhere(config.listen)) {
    result.insert(result.end(), {"localhost", "127.0.0.1", "[::1]"});
  }
  if (!is_everywhere(config.listen)) {
    bool brackets = config.listen.host.find(':') != std::string::npos;
    result.push_back(brackets ? fmt::format("[{}]", config.listen.host) : config.listen.host);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool has_ui(const serve_config& config) {
  return config.ui.value_or(is_loopback(config.listen));
}

settings settings_for(const settings& process, const tenant& one) {
  auto result = process;
  result.state_dir = fmt::format("{}/tenants/{}", process.state_dir, one.name);
  result.image = one.image;
  result.concurrent_runs = one.limits.concurrent_runs;
  result.sessions = one.limits.sessions;
  result.memory = one.limits.memory;
  result.cpus = one.limits.cpus;
  result.pids = one.limits.pids;
  result.timeout = one.limits.timeout;
  result.max_timeout = one.limits.max_timeout;
  result.spill = one.limits.output;
  result.artifacts = one.limits.artifacts;
  return result;
}

void add_rules(const tenant& one, policy& rules) {
  add_list(one.servers, fmt::format("{} (servers)", named(one)), rules);
  add_list(one.tools, fmt::format("{} (tools)", named(one)), rules);
  if (one.limits.tool_calls) {
    rules.calls_per_run.push_back(
        {*one.limits.tool_calls, fmt::format("{} (limits.tool_calls)", named(one)), {}});
  }
}

serve_change compare(const serve_config& before, const serve_config& after) {
  serve_change result;
  auto note = [](std::vector<std::string>& keys, const char* key, bool differs) {
    if (differs) {
      keys.emplace_back(key);
    }
  };
  note(result.restart, "listen", before.listen != after.listen);
  note(result.restart, "connections", before.connections != after.connections);
  // A listener either speaks TLS or doesn't; which certificate it shows may change.
  note(result.restart, "tls", before.tls.has_value() != after.tls.has_value());
  note(result.at_once, "tls", before.tls && after.tls && *before.tls != *after.tls);
  note(result.restart, "hosts", before.hosts != after.hosts);
  note(result.restart, "operator.listen", before.operators != after.operators);
  note(result.at_once, "concurrent_runs", before.concurrent_runs != after.concurrent_runs);
  note(result.at_once, "admission.queue", before.queue != after.queue);
  note(result.at_once, "oauth", before.oauth != after.oauth);
  note(result.at_once, "ui.enabled", has_ui(before) != has_ui(after));
  for (const auto& each : before.tenants) {
    const auto* now = after.find(each.name);
    if (now == nullptr) {
      result.removed.push_back(each.name);
    } else if (each != *now) {
      result.changed.push_back(compare_tenants(each, *now));
    }
  }
  for (const auto& each : after.tenants) {
    if (before.find(each.name) == nullptr) {
      result.added.push_back(each.name);
    }
  }
  return result;
}

} // namespace bulkhead
