#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/host_entry.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// `tools: [{name, permission_policy}]` of a server with an address.
void read_tool_policies(host_entry& entry) {
  for (const auto& each : entry.take("tools")) {
    const auto& name = member_of(each, "name");
    const auto& rule = member_of(each, "permission_policy");
    if (!name.is_string() || !rule.is_string()) {
      entry.refuse("tools must be an array of objects with name and permission_policy");
    } else if (rule == "always_deny") {
      entry.exclude_tool(name.get<std::string>());
    }
  }
}

void read_claude_entry(host_entry& entry) {
  entry.ignore(
      {"alwaysLoad", "displayName", "bareElicitationCapability", "discoveryCache", "role"});
  const auto& type = entry.take("type");
  if (type.is_null() || type == "stdio") {
    entry.copy_process();
  }
  if (type == "http" || type == "streamable-http" || (type.is_null() && !entry.has("command"))) {
    entry.copy_address("url", "http");
  } else if (type == "sse") {
    entry.copy_address("url", "sse");
  } else if (!type.is_null() && type != "stdio") {
    entry.refuse("its type is none of stdio, http and sse");
  }
  entry.copy("headers");
  if (entry.has("headersHelper")) {
    entry.refuse("a command gives its headers (headersHelper), which isn't supported");
  }
  entry.copy_timeout("timeout", "callTimeout", 1ms);
  entry.copy_timeout("request_timeout_ms", "callTimeout", 1ms);
  entry.remark_oauth("oauth");
  read_tool_policies(entry);
}

/// `mcp__SERVER`, `mcp__SERVER__*` and `mcp__SERVER__TOOL` of a list of denied permissions.
void read_denials(host_reading& reading, const json& permissions) {
  for (const auto& rule : texts_of(member_of(permissions, "deny"))) {
    std::string_view rest = rule;
    if (!rest.starts_with("mcp__")) {
      continue;
    }
    rest.remove_prefix(5);
    auto separator = rest.find("__");
    auto server = std::string{rest.substr(0, separator)};
    auto tool =
        separator == std::string_view::npos ? std::string_view{"*"} : rest.substr(separator + 2);
    reading.denied[server].emplace_back(tool);
  }
}

void switch_off(host_reading& reading, const json& names) {
  for (auto& name : texts_of(names)) {
    reading.switched_off.insert(std::move(name));
  }
}

} // namespace

void read_claude_code(host_reading& reading, const json& document) {
  auto scope = reading.file->scope;
  if (scope != host_scope::local) {
    reading.read_servers("mcpServers", member_of(document, "mcpServers"), variable_syntax::claude,
                         read_claude_entry);
    return;
  }
  const auto& project = member_of(member_of(document, "projects"), reading.context.project.c_str());
  switch_off(reading, member_of(project, "disabledMcpServers"));
  switch_off(reading, member_of(project, "disabledMcpjsonServers"));
  reading.read_servers("mcpServers", member_of(project, "mcpServers"), variable_syntax::claude,
                       read_claude_entry);
}

void read_claude_switches(host_reading& reading, const json& document) {
  read_denials(reading, member_of(document, "permissions"));
  if (reading.file->scope == host_scope::project) {
    switch_off(reading, member_of(document, "disabledMcpjsonServers"));
  }
}

void read_claude_desktop(host_reading& reading, const json& document) {
  reading.read_servers("mcpServers", member_of(document, "mcpServers"), variable_syntax::none,
                       [](host_entry& entry) {
                         entry.ignore({"type", "transport"});
                         entry.copy_process();
                         if (!entry.has("command")) {
                           entry.copy_address("url", "http");
                           entry.copy("headers");
                         }
                         entry.copy_switch("disabled", true);
                       });
}

} // namespace bulkhead
