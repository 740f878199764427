#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/host_entry.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// A server is started by its command or reached at its address; `type`, where there is one, says
/// which, and how.
void read_transport(host_entry& entry, std::initializer_list<const char*> address_keys) {
  const auto& type = entry.take(entry.has("type") ? "type" : "transport");
  if (!type.is_null() && !type.is_string()) {
    entry.refuse("type must be a string");
  }
  bool remote =
      type == "http" || type == "streamable-http" || type == "streamableHttp" || type == "sse";
  if (!remote && !type.is_null() && type != "stdio" && type != "local" && type != "remote") {
    entry.refuse("its type is none of stdio, http and sse");
  }
  if (!remote && entry.has("command")) {
    entry.ignore(address_keys);
    entry.ignore({"headers"});
    entry.copy_process();
    return;
  }
  for (const char* key : address_keys) {
    if (entry.has(key)) {
      entry.copy_address(key, type == "sse" ? "sse" : "http");
      break;
    }
  }
  entry.copy("headers");
}

void read_cursor_entry(host_entry& entry) {
  entry.ignore({"autoApprove", "alwaysAllow", "name", "description", "icon"});
  read_transport(entry, {"url", "serverUrl"});
  entry.copy("envFile");
  entry.copy("cwd");
  entry.copy_switch("disabled", true);
  entry.copy_switch("enabled", false);
  entry.copy_excluded("disabledTools");
  entry.remark_oauth("auth");
  entry.remark_oauth("oauth");
}

/// Values of `env` may also be numbers, which are written as such, and null, for none.
json vscode_environment(const json& env) {
  auto result = json::object();
  for (const auto& [name, value] : env.items()) {
    if (!value.is_null()) {
      result[name] = value.is_number() ? json(value.dump()) : value;
    }
  }
  return result;
}

void read_vscode_entry(host_entry& entry) {
  entry.ignore({"gallery", "version", "dev", "description", "icon", "name"});
  read_transport(entry, {"url"});
  if (const auto& env = member_of(entry.own(), "env"); env.is_object()) {
    entry.set("env", vscode_environment(env));
  }
  entry.copy("envFile");
  entry.copy("cwd");
  entry.copy_switch("disabled", true);
  entry.remark_oauth("oauth");
  const auto& sandboxed = entry.take("sandboxEnabled");
  entry.ignore({"sandbox"});
  if (sandboxed == json(true)) {
    entry.remark("VS Code confines it in a sandbox; here it runs unconfined");
  }
  auto url = member_of(entry.own(), "url");
  if (url.is_string() && !url.get_ref<const std::string&>().starts_with("http") &&
      url.get_ref<const std::string&>().find("://") != std::string::npos) {
    entry.refuse("its address is a socket's or pipe's, which isn't supported");
  }
}

void read_windsurf_entry(host_entry& entry) {
  entry.ignore({"autoApprove", "alwaysAllow", "registry", "name", "description"});
  read_transport(entry, {"serverUrl", "url"});
  entry.copy("cwd");
  entry.copy_switch("disabled", true);
  entry.copy_excluded("disabledTools");
  entry.remark_oauth("oauth");
}

/// `command` used to be an object of path, args and env.
void read_zed_command(host_entry& entry) {
  const auto& command = entry.take("command");
  if (!command.is_object()) {
    entry.copy_process();
    return;
  }
  for (const auto& [key, own_key] :
       {std::pair{"path", "command"}, std::pair{"args", "args"}, std::pair{"env", "env"}}) {
    if (const auto& value = member_of(command, key); !value.is_null()) {
      entry.set(own_key, value);
    }
  }
}

void read_zed_entry(host_entry& entry, const json& usual_timeout) {
  entry.ignore({"source", "remote", "settings"});
  if (!entry.has("command") && !entry.has("url")) {
    entry.refuse("an extension of Zed's starts it, in a way that only Zed knows");
  }
  if (entry.original().value("remote", json{}) == json(true)) {
    entry.remark("Zed may run it on a remote machine; here it runs on this one");
  }
  if (entry.has("command")) {
    read_zed_command(entry);
  } else {
    entry.copy_address("url", "http");
    entry.copy("headers");
  }
  entry.copy_switch("enabled", false);
  if (usual_timeout.is_number() && !entry.has("timeout")) {
    entry.set("callTimeout", usual_timeout);
  }
  entry.copy_timeout("timeout", "callTimeout", 1s);
  entry.remark_oauth("oauth");
}

/// `agent.tool_permissions.tools["mcp:SERVER:TOOL"].default` may be "deny".
void read_zed_permissions(host_reading& reading, const json& document) {
  const auto& tools =
      member_of(member_of(member_of(document, "agent"), "tool_permissions"), "tools");
  if (!tools.is_object()) {
    return;
  }
  for (const auto& [name, rules] : tools.items()) {
    std::string_view rest = name;
    if (!rest.starts_with("mcp:") || member_of(rules, "default") != json("deny")) {
      continue;
    }
    rest.remove_prefix(4);
    auto separator = rest.find(':');
    if (separator != std::string_view::npos) {
      reading.denied[std::string{rest.substr(0, separator)}].emplace_back(
          rest.substr(separator + 1));
    }
  }
}

} // namespace

void read_cursor(host_reading& reading, const json& document) {
  reading.read_servers("mcpServers", member_of(document, "mcpServers"), variable_syntax::editor,
                       read_cursor_entry);
}

void read_vscode(host_reading& reading, const json& document) {
  reading.read_servers("servers", member_of(document, "servers"), variable_syntax::editor,
                       read_vscode_entry);
}

void read_windsurf(host_reading& reading, const json& document) {
  reading.read_servers("mcpServers", member_of(document, "mcpServers"), variable_syntax::editor,
                       read_windsurf_entry);
}

void read_zed(host_reading& reading, const json& document) {
  read_zed_permissions(reading, document);
  const auto& usual_timeout = member_of(document, "context_server_timeout");
  reading.read_servers("context_servers", member_of(document, "context_servers"),
                       variable_syntax::none,
                       [&](host_entry& entry) { read_zed_entry(entry, usual_timeout); });
}

} // namespace bulkhead
