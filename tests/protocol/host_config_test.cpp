#include "protocol/host_config.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using nlohmann::json;

const std::map<std::string, std::string, std::less<>> variables = {
    {"TOKEN", "s3cret-value"}, {"DIR", "/opt/tools"}, {"EMPTY", ""}};

std::optional<std::string> look_up(std::string_view name) {
  auto found = variables.find(name);
  return found != variables.end() ? std::optional(found->second) : std::nullopt;
}

/// What a host's file gives, and what becomes of that as a configuration.
struct outcome {
  host_servers read;
  server_catalogue catalogue;

  std::string problem(std::string_view entry) const {
    std::string text;
    for (const auto& each : read.problems) {
      if (each.entry == entry) {
        text += (text.empty() ? "" : "\n") + each.message;
      }
    }
    return text;
  }
  const server_entry& at(std::string_view name) const {
    const auto* found = catalogue.find(name);
    if (found == nullptr) {
      std::string all;
      for (const auto& each : catalogue.problems) {
        all += to_text(each) + "\n";
      }
      throw std::runtime_error("no server " + std::string(name) + "\n" + all);
    }
    return *found;
  }
  bool has(std::string_view name) const { return catalogue.find(name) != nullptr; }
  bool disabled(const std::string& name) const {
    return read.servers.contains(name) &&
           read.servers[name].value("disabled", json{}) == json(true);
  }
};

outcome read(mcp_host host, std::vector<host_file> files, std::string project = {}) {
  outcome result;
  result.read = read_host_files(files, {host, "/home/u", std::move(project), look_up});
  config_file own{"/linked.json", json{{"mcpServers", result.read.servers}}.dump(), {}, {}};
  own.imported =
      imported_file{std::string(title_of(host)), result.read.sources, result.read.problems};
  result.catalogue = read_server_config({own}, look_up, "/home/u", {});
  return result;
}

outcome read(mcp_host host, std::string text) {
  return read(host, {{"/f", std::move(text)}});
}

outcome read_in_project(mcp_host host, std::string text) {
  return read(host, {{"/p/f", std::move(text), host_scope::project}}, "/p");
}

using texts = std::vector<std::string>;
using text_map = std::map<std::string, std::string>;

TEST(host_config, names) {
  for (auto host : all_hosts) {
    EXPECT_EQ(host_from_string(to_string(host)), host);
    EXPECT_FALSE(title_of(host).empty());
  }
  EXPECT_EQ(host_from_string("emacs"), std::nullopt);
  for (auto scope : {host_scope::user, host_scope::local, host_scope::project}) {
    EXPECT_EQ(scope_from_string(to_string(scope)), scope);
  }
  EXPECT_EQ(scope_from_string("machine"), std::nullopt);
}

TEST(host_config, places) {
  auto nothing = [](std::string_view) -> std::optional<std::string> { return {}; };
  for (auto host : all_hosts) {
    auto places = host_locations(host, "/home/u", "", nothing);
    ASSERT_FALSE(places.empty());
    EXPECT_TRUE(places[0].paths[0].starts_with("/home/u/."));
  }
  EXPECT_EQ(host_locations(mcp_host::goose, "/h", "/p", nothing).size(), 0U);
  EXPECT_EQ(host_locations(mcp_host::vscode, "/h", "/p", nothing)[0].paths[0],
            "/p/.vscode/mcp.json");
  auto elsewhere = [](std::string_view name) -> std::optional<std::string> {
    return "/else/" + std::string(name);
  };
  EXPECT_EQ(host_locations(mcp_host::codex, "/h", "", elsewhere)[0].paths[0],
            "/else/CODEX_HOME/config.toml");
  EXPECT_EQ(host_locations(mcp_host::zed, "/h", "", elsewhere)[0].paths[0],
            "/else/XDG_CONFIG_HOME/zed/settings.json");
  EXPECT_EQ(host_locations(mcp_host::claude_code, "/h", "", elsewhere)[0].paths[0],
            "/else/CLAUDE_CONFIG_DIR/.claude.json");
}

TEST(host_config, claude_code) {
  auto result = read(mcp_host::claude_code, R"({
    "numStartups": 5, "projects": {"/p": {"mcpServers": {"hidden": {"command": "x"}}}},
    "mcpServers": {
      "files": {"type": "stdio", "command": "${DIR}/run", "args": ["${TOKEN}", "${NOPE:-a:-b}", "$TOKEN"],
                "env": {"K": "${EMPTY:-x}", "L": "${NOPE}"}, "timeout": 2500, "alwaysLoad": true},
      "bare": {"command": "plain"},
      "http": {"type": "http", "url": "https://${HOST:-h}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
               "oauth": {"clientId": "c"}, "tools": [{"name": "rm", "permission_policy": "always_deny"},
                                                      {"name": "ls", "permission_policy": "always_allow"}]},
      "sse": {"type": "sse", "url": "http://h/sse"},
      "ws": {"type": "ws", "url": "ws://h"},
      "helper": {"type": "http", "url": "https://h", "headersHelper": "/bin/secret"},
      "limited": {"type": "http", "url": "https://h", "toolPermissions": {"a": "deny"}},
      "text": "x"}})");
  const auto& files = result.at("files");
  EXPECT_EQ(files.command, "/opt/tools/run");
  EXPECT_EQ(files.args, (texts{"s3cret-value", "a:-b", "$TOKEN"}));
  EXPECT_EQ(files.env, (text_map{{"K", ""}, {"L", "${NOPE}"}}));
  EXPECT_EQ(files.call_timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(files.source, "/f");
  EXPECT_EQ(result.problem("files"),
            "env.L: NOPE isn't set, so \"${NOPE}\" is passed as it stands");
  EXPECT_EQ(result.at("bare").command, "plain");
  const auto& http = result.at("http");
  EXPECT_EQ(http.transport, server_transport::http);
  EXPECT_EQ(http.url, "https://h/mcp");
  EXPECT_EQ(http.headers, (text_map{{"Authorization", "Bearer s3cret-value"}}));
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "http", "rm").allowed);
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "http", "ls").allowed);
  EXPECT_EQ(result.at("sse").transport, server_transport::sse);
  for (auto name : {"ws", "helper", "limited"}) {
    EXPECT_FALSE(result.has(name));
    EXPECT_TRUE(result.problem(name).find("isn't taken over") != std::string::npos) << name;
  }
  EXPECT_EQ(result.problem("text"), "an entry of mcpServers must be an object");
  EXPECT_FALSE(result.has("hidden"));
}

TEST(host_config, claude_code_in_a_project) {
  const std::string own = R"({"mcpServers": {"mine": {"command": "x"}}, "projects": {"/p": {
      "mcpServers": {"both": {"command": "local"}, "local": {"type": "sse", "url": "http://l"}},
      "disabledMcpjsonServers": ["off"]}}})";
  const std::string shared =
      R"({"mcpServers": {"both": {"command": "shared"}, "off": {"command": "x"},
      "rel": {"command": "./run.sh", "args": ["a"]}, "gone": {"command": "x"}, "my.github": {"command": "x"}}})";
  const std::string switches =
      R"({"permissions": {"deny": ["Bash", "mcp__rel__rm", "mcp__gone", "mcp__my_github__*"]}})";
  auto result = read(mcp_host::claude_code,
                     {{"/p/.mcp.json", shared, host_scope::project},
                      {"/home/u/.claude.json", own, host_scope::local},
                      {"/home/u/.claude/settings.json", switches, host_scope::user, true}},
                     "/p");
  EXPECT_FALSE(result.has("mine"));
  EXPECT_EQ(result.at("both").command, "local");
  EXPECT_EQ(result.at("both").source, "/home/u/.claude.json");
  EXPECT_EQ(result.at("rel").cwd, "/p");
  EXPECT_EQ(result.at("rel").source, "/p/.mcp.json");
  EXPECT_EQ(result.at("local").cwd, "");
  EXPECT_TRUE(result.disabled("off"));
  EXPECT_TRUE(result.disabled("gone"));
  EXPECT_TRUE(result.disabled("my.github"));
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "rel", "rm").allowed);
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "rel", "ls").allowed);
}

TEST(host_config, claude_desktop_expands_nothing) {
  auto result = read(mcp_host::claude_desktop, R"({"globalShortcut": "", "mcpServers": {
      "a": {"command": "npx", "args": ["${TOKEN}", "$${X}"], "env": {"K": "${NOPE}"}},
      "b": {"command": "x", "env": {"K": 3}}}})");
  EXPECT_EQ(result.at("a").args, (texts{"${TOKEN}", "$${X}"}));
  EXPECT_EQ(result.at("a").env, (text_map{{"K", "${NOPE}"}}));
  EXPECT_FALSE(result.has("b"));
  EXPECT_EQ(result.catalogue.problems.size(), 1U);
}

TEST(host_config, cursor) {
  const std::string text = R"({ // a comment
    "mcpServers": {
      "a": {"command": "${userHome}/bin/x", "args": ["${env:TOKEN}", "${workspaceFolder}${/}y", "${FOO}"],
            "env": {"K": "${env:NOPE}"}, "disabledTools": ["rm"],},
      "b": {"url": "https://${env:NOPE}h", "headers": {"A": "${env:TOKEN}"}},
      "c": {"url": "https://h", "type": "sse"},
      "in": {"command": "x", "args": ["${input:key}"]},
      "off": {"command": "x", "disabled": true},
    },
  })";
  auto result = read_in_project(mcp_host::cursor, text);
  EXPECT_EQ(result.at("a").command, "/home/u/bin/x");
  EXPECT_EQ(result.at("a").args, (texts{"s3cret-value", "/p/y", "${FOO}"}));
  EXPECT_EQ(result.at("a").env, (text_map{{"K", ""}}));
  EXPECT_EQ(result.at("a").cwd, "/p");
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "rm").allowed);
  EXPECT_EQ(result.problem("a"),
            "args[2]: \"${FOO}\" is passed as it stands; ${env:…} would name a "
            "variable\nenv.K: NOPE isn't set, so nothing stands in its place");
  EXPECT_EQ(result.at("b").url, "https://h");
  EXPECT_EQ(result.at("b").headers, (text_map{{"A", "s3cret-value"}}));
  EXPECT_EQ(result.at("c").transport, server_transport::sse);
  EXPECT_EQ(
      result.problem("in"),
      "isn't taken over: args[0] asks for ${input:key} when it starts, which can't be had here; "
      "write ${env:NAME} and set that variable");
  EXPECT_TRUE(result.disabled("off"));
  EXPECT_TRUE(read(mcp_host::cursor, text).problem("a").find("is in no project's file") !=
              std::string::npos);
}

TEST(host_config, vscode) {
  auto result = read_in_project(mcp_host::vscode, R"({
    "inputs": [{"type": "promptString", "id": "key", "password": true}],
    "mcpServers": {"not": {"command": "x"}},
    "servers": {
      "a": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/s.js"], "cwd": "sub",
            "env": {"N": 3, "Z": null, "T": "t"}, "dev": {"watch": "x"}, "sandboxEnabled": true},
      "b": {"type": "http", "url": "https://h", "headers": {"K": "Bearer ${input:key}"}},
      "c": {"type": "http", "url": "unix:///run/x.sock"},
      "d": {"type": "stdio", "command": "x", "args": ["${command:pick}"]},
      "e": {"type": "pipe", "command": "x"},
      "f": {"command": "x", "envFile": "${workspaceFolder}/.env"},
      "g": {"type": "stdio", "command": "x", "envFile": ".env"}}})");
  const auto& a = result.at("a");
  EXPECT_EQ(a.args, (texts{"/p/s.js"}));
  EXPECT_EQ(a.cwd, "/p/sub");
  EXPECT_EQ(a.env, (text_map{{"N", "3"}, {"T", "t"}}));
  EXPECT_EQ(result.problem("a"), "VS Code confines it in a sandbox; here it runs unconfined");
  for (auto name : {"b", "c", "d", "e"}) {
    EXPECT_FALSE(result.read.servers.contains(name)) << name;
  }
  EXPECT_EQ(result.read.servers["f"]["envFile"], "/p/.env");
  EXPECT_EQ(result.read.servers["g"]["envFile"], "/p/.env");
  EXPECT_FALSE(result.has("not"));
}

TEST(host_config, windsurf) {
  auto result = read(mcp_host::windsurf, R"({"mcpServers": {
      "a": {"serverUrl": "https://h/${env:TOKEN}", "headers": {"K": "${env:TOKEN}"}, "disabledTools": ["x"]},
      "b": {"command": "x", "disabled": true, "alwaysAllow": ["y"]},
      "c": {"serverUrl": "https://h", "headers": {"K": "${file:/etc/key}"}},
      "d": {"command": "x", "disabled": "yes"}}})");
  EXPECT_EQ(result.at("a").url, "https://h/s3cret-value");
  EXPECT_EQ(result.at("a").headers, (text_map{{"K", "s3cret-value"}}));
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "x").allowed);
  EXPECT_TRUE(result.disabled("b"));
  EXPECT_FALSE(result.has("c"));
  EXPECT_EQ(result.problem("d"), "isn't taken over: disabled must be true or false");
}

TEST(host_config, gemini) {
  auto result = read(mcp_host::gemini, R"({ "theme": "x", "mcp": {"excluded": ["Off"]},
    "mcpServers": {
      "a": {"command": "$DIR/x", "args": ["${TOKEN}", "${NOPE:-d}", "$NOPE", "${NOPE}", "$$5"],
            "cwd": "/w", "timeout": 1500, "trust": true, "includeTools": ["ls", "cat(x=1) "], "excludeTools": ["cat"]},
      "sse": {"url": "http://h/sse"},
      "http": {"httpUrl": "http://h/mcp", "url": "http://unused", "headers": {"K": "$TOKEN"}},
      "typed": {"url": "http://h/mcp", "type": "http"},
      "off": {"command": "x"},
      "google": {"httpUrl": "https://h", "authProviderType": "google_credentials"},
      "rel": {"command": "x", "cwd": "sub"},
      "tcp": {
  "tcp" : "ws://h"
}
}
})");
  const auto& a = result.at("a");
  EXPECT_EQ(a.command, "/opt/tools/x");
  EXPECT_EQ(a.args, (texts{"s3cret-value", "d", "$NOPE", "${NOPE}", "$$5"}));
  EXPECT_EQ(a.cwd, "/w");
  EXPECT_EQ(a.call_timeout, std::chrono::milliseconds(1500));
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "a", "ls").allowed);
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "cat").allowed);
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "other").allowed);
  EXPECT_EQ(result.at("sse").transport, server_transport::sse);
  EXPECT_EQ(result.at("http").transport, server_transport::http);
  EXPECT_EQ(result.at("http").url, "http://h/mcp");
  EXPECT_EQ(result.at("http").headers, (text_map{{"K", "s3cret-value"}}));
  EXPECT_EQ(result.at("typed").transport, server_transport::http);
  EXPECT_TRUE(result.disabled("off"));
  for (auto name : {"google", "rel", "tcp"}) {
    EXPECT_FALSE(result.read.servers.contains(name)) << name;
  }
}

TEST(host_config, gemini_switches) {
  auto result = read(mcp_host::gemini,
                     {{"/s", R"({"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"},
                                 "c": {"command": "x"}}, "mcp": {"allowed": ["a", "b"]}})"},
                      {"/e", R"({"b": {"enabled": false}})", host_scope::user, true}});
  EXPECT_FALSE(result.disabled("a"));
  EXPECT_TRUE(result.disabled("b"));
  EXPECT_TRUE(result.disabled("c"));
}

TEST(host_config, codex) {
  auto result = read(mcp_host::codex, R"(
model = "x"
[mcp_servers.a]
command = "npx" # a comment
args = ["${TOKEN}", 'lit']
env = { K = "${NOPE}" }
env_vars = ["TOKEN", "NOPE", { name = "EMPTY", source = "local" }]
startup_timeout_sec = 2.5
tool_timeout_sec = 30
enabled_tools = ["ls", "cat"]
disabled_tools = ["cat"]
default_tools_approval_mode = "prompt"
[mcp_servers.a.tools.ls]
approval_mode = "approve"
[mcp_servers."my server"]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-A" = "${X}" }
env_http_headers = { "X-B" = "TOKEN", "X-C" = "NOPE" }
startup_timeout_ms = 700
[mcp_servers.off]
command = "x"
enabled = false
[mcp_servers.far]
command = "x"
experimental_environment = "remote"
[mcp_servers.strange]
command = "x"
tool_rules = ["y"]
[mcp_servers.none]
required = true
[mcp_servers.helper]
url = "https://h"
http_headers_helper = "x"
)");
  const auto& a = result.at("a");
  EXPECT_EQ(a.args, (texts{"${TOKEN}", "lit"}));
  EXPECT_EQ(a.env, (text_map{{"K", "${NOPE}"}, {"TOKEN", "s3cret-value"}, {"EMPTY", ""}}));
  EXPECT_EQ(a.start_timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(a.call_timeout, std::chrono::seconds(30));
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "a", "ls").allowed);
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "cat").allowed);
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "rm").allowed);
  EXPECT_TRUE(result.problem("a").starts_with("Codex asks before"));
  const auto& remote = result.at("my server");
  EXPECT_EQ(remote.url, "https://h/mcp");
  EXPECT_EQ(remote.headers, (text_map{{"Authorization", "Bearer s3cret-value"},
                                      {"X-A", "${X}"},
                                      {"X-B", "s3cret-value"}}));
  EXPECT_EQ(remote.start_timeout, std::chrono::milliseconds(700));
  EXPECT_TRUE(result.disabled("off"));
  for (auto name : {"far", "strange", "none", "helper"}) {
    EXPECT_FALSE(result.read.servers.contains(name)) << name;
    EXPECT_FALSE(result.problem(name).empty()) << name;
  }
}

TEST(host_config, opencode_one) {
  auto result = read(mcp_host::opencode, R"({ "$schema": "x", // comment
    "tools": {"b_*": false, "a_rm*": false, "*_danger": false, "unrelated": false},
    "permission": {"a_ask": "ask", "a_never": "deny"},
    "mcp": {
      "a": {"type": "local", "command": ["npx", "{env:TOKEN}", "${TOKEN}"],
            "environment": {"K": "{env:NOPE}x"}, "timeout": 5000, "enabled": true},
      "b": {"type": "local", "command": ["x"]},
      "r": {"type": "remote", "url": "https://h/{env:EMPTY}", "headers": {"K": "{env:TOKEN}"}, "oauth": false},
      "servers": {"type": "local", "command": ["named-servers"]},
      "f": {"type": "remote", "url": "https://h", "headers": {"K": "{file:~/.key}"}},
      "only": {"enabled": false},
      "odd": {"type": "local", "command": "npx x"},
      "off": {"type": "local", "command": ["x"], "enabled": false}}})");
  const auto& a = result.at("a");
  EXPECT_EQ(a.command, "npx");
  EXPECT_EQ(a.args, (texts{"s3cret-value", "${TOKEN}"}));
  EXPECT_EQ(a.env, (text_map{{"K", "x"}}));
  EXPECT_EQ(a.call_timeout, std::chrono::seconds(5));
  for (auto tool : {"rm", "rmdir", "danger", "very_danger", "never"}) {
    EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", tool).allowed) << tool;
  }
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "a", "ls").allowed);
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "a", "ask").allowed);
  EXPECT_TRUE(result.disabled("b"));
  EXPECT_TRUE(result.disabled("off"));
  EXPECT_EQ(result.at("r").url, "https://h/");
  EXPECT_EQ(result.at("r").headers, (text_map{{"K", "s3cret-value"}}));
  EXPECT_EQ(result.at("servers").command, "named-servers");
  for (auto name : {"f", "only", "odd"}) {
    EXPECT_FALSE(result.read.servers.contains(name)) << name;
  }
}

TEST(host_config, opencode_two) {
  auto result = read_in_project(mcp_host::opencode, R"({"mcp": {
    "timeout": {"startup": 900, "request": 1100},
    "old": {"type": "local", "command": ["x"]},
    "servers": {
      "a": {"type": "local", "command": ["x", "y"], "cwd": ".", "disabled": false},
      "b": {"type": "remote", "url": "https://h", "timeout": {"request": 5}},
      "off": {"type": "local", "command": ["x"], "disabled": true}}}})");
  EXPECT_EQ(result.at("a").args, (texts{"y"}));
  EXPECT_EQ(result.at("a").cwd, "/p");
  EXPECT_EQ(result.at("a").start_timeout, std::chrono::milliseconds(900));
  EXPECT_EQ(result.at("a").call_timeout, std::chrono::milliseconds(1100));
  EXPECT_EQ(result.at("b").call_timeout, std::chrono::milliseconds(100));
  EXPECT_TRUE(result.problem("b").find("becomes 0.1 s") != std::string::npos);
  EXPECT_TRUE(result.disabled("off"));
  EXPECT_TRUE(result.has("old"));
}

TEST(host_config, zed) {
  auto result = read(mcp_host::zed, R"({
    // Zed settings
    "context_server_timeout": 90,
    "agent": {"tool_permissions": {"tools": {"mcp:a:rm": {"default": "deny"}, "mcp:a:ls": {"default": "allow"}}}},
    "context_servers": {
      "a": {"enabled": true, "command": "x", "args": ["${TOKEN}"], "env": {"K": "v"}, "timeout": 5},
      "old": {"command": {"path": "y", "args": ["z"], "env": null}},
      "r": {"url": "https://h", "headers": {"K": "$TOKEN"}},
      "ext": {"source": "extension", "settings": {"token": "s3cret-value"}},
      "off": {"enabled": false, "command": "x"},
    }})");
  EXPECT_EQ(result.at("a").args, (texts{"${TOKEN}"}));
  EXPECT_EQ(result.at("a").call_timeout, std::chrono::seconds(5));
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "a", "rm").allowed);
  EXPECT_TRUE(allows_tool_name(result.catalogue.rules, "a", "ls").allowed);
  EXPECT_EQ(result.at("old").command, "y");
  EXPECT_EQ(result.at("old").args, (texts{"z"}));
  EXPECT_EQ(result.at("old").call_timeout, std::chrono::seconds(90));
  EXPECT_EQ(result.at("r").headers, (text_map{{"K", "$TOKEN"}}));
  EXPECT_TRUE(result.problem("ext").find("extension of Zed's") != std::string::npos);
  EXPECT_TRUE(result.disabled("off"));
}

TEST(host_config, goose) {
  auto result = read(mcp_host::goose, R"(
GOOSE_PROVIDER: x
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    timeout: 300
  a:
    type: stdio
    name: My Tools
    cmd: npx
    args: [-y, "${TOKEN}", 5]
    envs: {K: v1.10, N: 007}
    env_keys: [TOKEN]
    timeout: 45
    available_tools: [ls]
    enabled: true
    description: "d"
  r:
    type: streamable_http
    name: r
    uri: https://h/mcp
    envs: {OWN: mine}
    env_keys: [TOKEN]
    headers:
      Authorization: Bearer $TOKEN
      X: ${OWN}-${NOPE}
    enabled: true
  kept:
    type: stdio
    name: kept
    cmd: x
    args: []
    env_keys: [NOPE]
    enabled: true
  deep:
    enabled: false
    config: {type: stdio, name: deep, cmd: x, args: []}
)");
  const auto& a = result.at("My Tools");
  EXPECT_EQ(a.args, (texts{"-y", "${TOKEN}", "5"}));
  EXPECT_EQ(a.env, (text_map{{"K", "v1.10"}, {"N", "007"}, {"TOKEN", "s3cret-value"}}));
  EXPECT_EQ(a.call_timeout, std::chrono::seconds(45));
  EXPECT_EQ(a.description, "d");
  EXPECT_FALSE(allows_tool_name(result.catalogue.rules, "My Tools", "rm").allowed);
  const auto& r = result.at("r");
  EXPECT_EQ(r.headers, (text_map{{"Authorization", "Bearer s3cret-value"}, {"X", "mine-${NOPE}"}}));
  EXPECT_TRUE(result.problem("developer").find("part of Goose itself") != std::string::npos);
  EXPECT_FALSE(result.has("kept"));
  EXPECT_TRUE(result.problem("kept").find("set the variable NOPE") != std::string::npos);
  EXPECT_TRUE(result.disabled("deep"));
}

TEST(host_config, a_broken_file_is_one_error_with_its_place) {
  struct broken {
    mcp_host host;
    std::string text;
    std::string message;
  };
  const std::vector<broken> all = {
      {mcp_host::cursor, "{\n \"mcpServers\": {s3cret-value}}", "line 2, column 17: "},
      {mcp_host::codex, "[mcp_servers.a]\ncommand = s3cret-value\n", "line 2, column "},
      {mcp_host::codex, "a = 1\na = 's3cret-value'\n", "line 2, column "},
      {mcp_host::codex, "[/a]\n", "line 1, column "},
      {mcp_host::goose, "extensions:\n  a: {s3cret-value\nb: ]", "line "},
      {mcp_host::goose, "a: &a [*a]", "line "},
      {mcp_host::goose, "- a", "must hold a YAML mapping"},
      {mcp_host::zed, "[]", "must hold a JSON object"}};
  for (const auto& [host, text, message] : all) {
    auto result = read(host, text);
    ASSERT_EQ(result.read.problems.size(), 1U) << text;
    EXPECT_EQ(result.read.problems[0].file, "/f");
    EXPECT_TRUE(result.read.problems[0].message.starts_with(message))
        << result.read.problems[0].message;
    EXPECT_TRUE(result.read.problems[0].message.find("s3cret") == std::string::npos);
    EXPECT_TRUE(result.catalogue.rules.closed.empty()) << "no policy is lost with it";
  }
  auto two = read(mcp_host::opencode,
                  {{"/a", "{"}, {"/b", R"({"mcp": {"x": {"type": "local", "command": ["y"]}}})"}});
  EXPECT_TRUE(two.has("x"));
}

TEST(host_config, one_bad_server_leaves_the_others) {
  auto result = read(mcp_host::claude_code, R"({"mcpServers": {
      "a": {"command": "x", "args": "s3cret-value"}, "b": {"command": ["s3cret-value"]},
      "c": {"command": "x", "env": {"K": ["s3cret-value"]}}, "d": {"type": 3}, "e": {"command": "x$${TOKEN}"},
      "f": {"command": "x", "args": ["${A:-${B}}"]}, "good": {"command": "x"}}})");
  EXPECT_EQ(result.catalogue.servers.size(), 1U);
  EXPECT_TRUE(result.has("good"));
  for (auto name : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_TRUE(std::any_of(result.catalogue.problems.begin(), result.catalogue.problems.end(),
                            [&](const auto& each) { return each.entry == name; }))
        << name;
  }
  for (const auto& each : result.catalogue.problems) {
    EXPECT_TRUE(to_text(each).find("s3cret") == std::string::npos) << to_text(each);
  }
}

TEST(host_config, a_file_of_many_aliases_is_bounded) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    auto before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) {
      text += (j == 0 ? "" : ",") + before;
    }
    text += "]\n";
  }
  auto result = read(mcp_host::goose, text);
  ASSERT_EQ(result.read.problems.size(), 1U);
  EXPECT_TRUE(result.read.problems[0].message.find("grows too large") != std::string::npos);
}

TEST(host_config, a_file_can_be_large) {
  json document{{"history", std::string(6 << 20, 'x')},
                {"mcpServers", {{"a", {{"command", "x"}}}}}};
  EXPECT_TRUE(read(mcp_host::claude_code, document.dump()).has("a"));
}

TEST(host_config, itself_is_left_out) {
  auto result =
      read(mcp_host::claude_code, R"({"mcpServers": {"bulkhead": {"command": "bulkhead"}}})");
  EXPECT_FALSE(result.has("bulkhead"));
  EXPECT_FALSE(result.catalogue.has_errors());
}

} // namespace
} // namespace bulkhead
