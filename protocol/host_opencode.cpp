#include <algorithm>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/host_entry.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// The name that OpenCode puts before a server's tools, and an underscore after it.
std::string tool_prefix(std::string_view server) {
  std::string result;
  for (char c : server) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
    result += plain ? c : '_';
  }
  return result + "_";
}

/// Patterns of `SERVER_TOOL` that are switched off. Too many tools may be left out, never too few.
std::vector<std::string> forbidden_patterns(const json& document) {
  std::vector<std::string> result;
  const auto& tools = member_of(document, "tools");
  for (const auto& [pattern, value] : object_of(tools).items()) {
    if (value == json(false)) {
      result.push_back(pattern);
    }
  }
  const auto& rules = member_of(document, "permission");
  for (const auto& [pattern, value] : object_of(rules).items()) {
    if (value == json("deny") || member_of(value, "*") == json("deny")) {
      result.push_back(pattern);
    }
  }
  return result;
}

void forbid(host_entry& entry, std::string_view server, const std::vector<std::string>& patterns) {
  auto prefix = tool_prefix(server);
  for (const std::string& pattern : patterns) {
    if (pattern == prefix.substr(0, prefix.size() - 1) || pattern == "*" ||
        (pattern.ends_with('*') &&
         prefix.starts_with(std::string_view{pattern}.substr(0, pattern.size() - 1)))) {
      entry.disable();
    } else if (pattern.starts_with(prefix)) {
      entry.exclude_tool(pattern.substr(prefix.size()));
    } else if (pattern.starts_with('*')) {
      entry.exclude_tool(pattern);
      if (pattern.starts_with("*_")) {
        entry.exclude_tool(pattern.substr(2));
      }
    } else if (auto star = pattern.find_first_of("*?");
               star != std::string::npos && prefix.starts_with(pattern.substr(0, star))) {
      entry.refuse(
          fmt::format("\"{}\" may forbid some of its tools in a way that can't be told here",
                      shown_name(pattern)));
    }
  }
}

/// The whole command is one array.
void read_local(host_entry& entry) {
  const auto& command = entry.take("command");
  if (!command.is_array() || command.empty()) {
    entry.refuse("command must be an array that begins with the program to start");
    return;
  }
  entry.set("command", command.front());
  if (command.size() > 1) {
    entry.set("args", json(command.begin() + 1, command.end()));
  }
  entry.copy("environment", "env");
  entry.copy("cwd");
}

void read_opencode_timeout(host_entry& entry, const json& usual) {
  const auto& own = entry.take("timeout");
  const auto& value = own.is_null() ? usual : own;
  if (value.is_object()) {
    entry.set_timeout("startup", member_of(value, "startup"), "startTimeout", 1ms);
    entry.set_timeout("request", member_of(value, "request"), "callTimeout", 1ms);
  } else {
    entry.set_timeout("timeout", value, "callTimeout", 1ms);
  }
}

void read_opencode_entry(host_entry& entry, const json& usual_timeout) {
  const auto& type = entry.take("type");
  entry.ignore({"codemode"});
  if (type == json("local")) {
    read_local(entry);
  } else if (type == json("remote")) {
    entry.copy_address("url", "http");
    entry.copy("headers");
    entry.remark_oauth("oauth");
  } else if (type.is_null() && !entry.has("command") && !entry.has("url")) {
    entry.refuse("only switches a server on or off that another file defines");
  } else {
    entry.refuse("its type is neither local nor remote");
  }
  entry.copy_switch("enabled", false);
  entry.copy_switch("disabled", true);
  read_opencode_timeout(entry, usual_timeout);
}

/// Is it a server of the first layout, where names stand right below `mcp`?
bool is_entry(const json& value) {
  return value.is_object() && (member_of(value, "type").is_string() || value.contains("enabled") ||
                               value.contains("command"));
}

} // namespace

void read_opencode(host_reading& reading, const json& document) {
  const auto& servers = member_of(document, "mcp");
  auto forbidden = forbidden_patterns(document);
  const auto& experimental = member_of(member_of(document, "experimental"), "mcp_timeout");
  auto read_all = [&](const char* what, const json& entries, const json& usual_timeout) {
    if (!entries.is_object()) {
      reading.read_servers(what, entries, variable_syntax::opencode, [](host_entry&) {});
      return;
    }
    for (const auto& [name, value] : entries.items()) {
      reading.read_servers(what, json{{name, value}}, variable_syntax::opencode,
                           [&, server = name](host_entry& entry) {
                             read_opencode_entry(entry, usual_timeout);
                             forbid(entry, server, forbidden);
                           });
    }
  };
  if (!servers.is_object()) {
    read_all("mcp", servers, experimental);
    return;
  }
  auto first_layout = json::object();
  for (const auto& [name, value] : servers.items()) {
    bool second_layout = (name == "servers" || name == "timeout") && !is_entry(value);
    if (!second_layout) {
      first_layout[name] = value;
    }
  }
  read_all("mcp", first_layout, experimental);
  if (const auto& second = member_of(servers, "servers"); !is_entry(second)) {
    const auto& usual = member_of(servers, "timeout");
    read_all("mcp.servers", second, is_entry(usual) ? experimental : usual);
  }
}

} // namespace bulkhead
