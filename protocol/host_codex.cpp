#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/host_entry.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// Variables that are handed on: names, or objects of name and source.
void read_handed_on(host_entry& entry) {
  auto names = json::array();
  for (const auto& each : entry.take("env_vars")) {
    const auto& name = each.is_object() ? member_of(each, "name") : each;
    if (member_of(each, "source") == json("remote")) {
      entry.refuse("env_vars takes variables of a remote machine, which isn't supported");
    } else if (!name.is_string()) {
      entry.refuse("env_vars must be an array of variables' names");
    } else {
      names.push_back(name);
    }
  }
  if (!names.empty()) {
    entry.set("envVars", std::move(names));
  }
}

/// The headers in our own syntax, which is why they aren't translated any more: texts as they are,
/// and values of variables.
void read_codex_headers(host_entry& entry, json& headers) {
  const auto& texts = entry.take("http_headers");
  const auto& variables = entry.take("env_http_headers");
  for (const auto* each : {&texts, &variables}) {
    if (!each->is_null() && !each->is_object()) {
      entry.refuse("http_headers and env_http_headers must be tables of strings");
      return;
    }
  }
  for (const auto& [name, value] : texts.items()) {
    headers[name] = value;
  }
  for (const auto& [name, value] : variables.items()) {
    if (value.is_string() && is_variable_name(value.get_ref<const std::string&>())) {
      entry.own_header(name, fmt::format("${{{}-}}", value.get_ref<const std::string&>()));
    } else {
      entry.refuse(fmt::format("env_http_headers.{} must name a variable", shown_name(name)));
    }
  }
  const auto& bearer = entry.take("bearer_token_env_var");
  if (bearer.is_string() && is_variable_name(bearer.get_ref<const std::string&>())) {
    entry.own_header("Authorization",
                     fmt::format("Bearer ${{{}}}", bearer.get_ref<const std::string&>()));
  } else if (!bearer.is_null()) {
    entry.refuse("bearer_token_env_var must name a variable");
  }
}

/// What is said of single tools.
void read_codex_tools(host_entry& entry) {
  entry.copy_included("enabled_tools");
  entry.copy_excluded("disabled_tools");
  const auto& asks = entry.take("default_tools_approval_mode");
  bool asked = asks == json("prompt");
  const auto& tools = entry.take("tools");
  for (const auto& [name, rules] : object_of(tools).items()) {
    if (member_of(rules, "enabled") == json(false)) {
      entry.exclude_tool(name);
    }
    asked = asked || member_of(rules, "approval_mode") == json("prompt");
  }
  if (asked) {
    entry.remark("Codex asks before some of its tools are called; here nobody is asked unless a "
                 "policy says so");
  }
}

void read_codex_entry(host_entry& entry) {
  entry.ignore({"required", "supports_parallel_tool_calls", "startup_readiness", "scopes", "name",
                "oauth_resource"});
  if (entry.has("bearer_token")) {
    entry.refuse("has bearer_token, which Codex refuses; use bearer_token_env_var");
  }
  if (entry.has("http_headers_helper")) {
    entry.refuse("a command gives its headers (http_headers_helper), which isn't supported");
  }
  for (const char* key : {"experimental_environment", "environment_id"}) {
    const auto& where = entry.take(key);
    if (!where.is_null() && where != json("local")) {
      entry.refuse("Codex starts it on another machine, which isn't supported");
    }
  }
  if (entry.has("command")) {
    entry.copy_process();
    entry.copy("cwd");
    read_handed_on(entry);
  } else {
    entry.copy_address("url", "http");
    auto headers = json::object();
    read_codex_headers(entry, headers);
    if (!headers.empty()) {
      entry.set("headers", std::move(headers));
    }
  }
  entry.copy_switch("enabled", false);
  entry.copy_timeout("startup_timeout_ms", "startTimeout", 1ms);
  entry.copy_timeout("startup_timeout_sec", "startTimeout", 1s);
  entry.copy_timeout("tool_timeout_sec", "callTimeout", 1s);
  read_codex_tools(entry);
  entry.remark_oauth("oauth");
}

} // namespace

void read_codex(host_reading& reading, const json& document) {
  reading.read_servers("mcp_servers", member_of(document, "mcp_servers"), variable_syntax::none,
                       read_codex_entry);
}

} // namespace bulkhead
