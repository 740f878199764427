#include <fmt/format.h>

#include "protocol/host_config.hpp"

namespace bulkhead {

namespace {

/// Folders that hosts' files lie in.
struct host_folders {
  std::string home;
  std::string config;  ///< XDG_CONFIG_HOME
  std::string library; ///< where macOS has what XDG_CONFIG_HOME has elsewhere
  std::string claude;
  std::string claude_state; ///< the folder of .claude.json
  std::string codex;
};

host_folders folders_of(std::string_view home, const environment_lookup& environment) {
  auto or_else = [&](const char* variable, std::string usual) {
    auto value = environment(variable);
    return value && value->starts_with('/') ? *value : std::move(usual);
  };
  host_folders result;
  result.home = home;
  result.config = or_else("XDG_CONFIG_HOME", result.home + "/.config");
  result.library = result.home + "/Library/Application Support";
  result.claude = or_else("CLAUDE_CONFIG_DIR", result.home + "/.claude");
  result.claude_state = or_else("CLAUDE_CONFIG_DIR", result.home);
  result.codex = or_else("CODEX_HOME", result.home + "/.codex");
  return result;
}

using locations = std::vector<host_location>;

constexpr auto user = host_scope::user;
constexpr auto project = host_scope::project;

locations user_locations(mcp_host host, const host_folders& at) {
  switch (host) {
  case mcp_host::claude_code:
    return {{{at.claude_state + "/.claude.json"}, user},
            {{at.claude + "/settings.json"}, user, true}};
  case mcp_host::claude_desktop:
    return {{{at.config + "/Claude/claude_desktop_config.json",
              at.library + "/Claude/claude_desktop_config.json"},
             user}};
  case mcp_host::cursor:
    return {{{at.home + "/.cursor/mcp.json"}, user}};
  case mcp_host::vscode:
    return {{{at.config + "/Code/User/mcp.json", at.library + "/Code/User/mcp.json"}, user}};
  case mcp_host::windsurf:
    return {{{at.home + "/.codeium/windsurf/mcp_config.json"}, user}};
  case mcp_host::gemini:
    return {{{at.home + "/.gemini/settings.json"}, user},
            {{at.home + "/.gemini/mcp-server-enablement.json"}, user, true}};
  case mcp_host::codex:
    return {{{at.codex + "/config.toml"}, user}};
  case mcp_host::opencode:
    return {{{at.config + "/opencode/config.json"}, user},
            {{at.config + "/opencode/opencode.json"}, user},
            {{at.config + "/opencode/opencode.jsonc"}, user}};
  case mcp_host::zed:
    return {{{at.config + "/zed/settings.json"}, user}};
  case mcp_host::goose:
    return {{{at.config + "/goose/config.yaml"}, user}};
  }
  return {};
}

locations project_locations(mcp_host host, const std::string& folder, const host_folders& at) {
  switch (host) {
  case mcp_host::claude_code:
    return {{{folder + "/.mcp.json"}, project},
            {{at.claude_state + "/.claude.json"}, host_scope::local},
            {{at.claude + "/settings.json"}, user, true},
            {{folder + "/.claude/settings.json"}, project, true},
            {{folder + "/.claude/settings.local.json"}, project, true}};
  case mcp_host::cursor:
    return {{{folder + "/.cursor/mcp.json"}, project}};
  case mcp_host::vscode:
    return {{{folder + "/.vscode/mcp.json"}, project}};
  case mcp_host::gemini:
    return {{{folder + "/.gemini/settings.json"}, project},
            {{at.home + "/.gemini/mcp-server-enablement.json"}, user, true}};
  case mcp_host::codex:
    return {{{folder + "/.codex/config.toml"}, project}};
  case mcp_host::opencode:
    return {{{folder + "/opencode.json"}, project}, {{folder + "/opencode.jsonc"}, project}};
  case mcp_host::zed:
    return {{{folder + "/.zed/settings.json"}, project}};
  default:
    return {};
  }
}

} // namespace

std::vector<host_location> host_locations(mcp_host host, std::string_view home,
                                          std::string_view folder,
                                          const environment_lookup& environment) {
  auto at = folders_of(home, environment);
  return folder.empty() ? user_locations(host, at)
                        : project_locations(host, std::string{folder}, at);
}

} // namespace bulkhead
