#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {

/// A program whose definitions of MCP servers can be taken over.
enum class mcp_host : std::uint8_t {
  claude_code,
  claude_desktop,
  cursor,
  vscode,
  windsurf,
  gemini,
  codex,
  opencode,
  zed,
  goose,
};

inline constexpr std::array all_hosts = {
    mcp_host::claude_code, mcp_host::claude_desktop, mcp_host::cursor, mcp_host::vscode,
    mcp_host::windsurf,    mcp_host::gemini,         mcp_host::codex,  mcp_host::opencode,
    mcp_host::zed,         mcp_host::goose};

/// The name on a command line and in files, e.g. "claude-code".
std::string_view to_string(mcp_host host);

/// The name for people, e.g. "Claude Code".
std::string_view title_of(mcp_host host);

/// The inverse of `to_string`.
std::optional<mcp_host> host_from_string(std::string_view name);

/// Whose file it is, and what in it counts.
enum class host_scope : std::uint8_t {
  user,    ///< the user's own file, for all projects
  local,   ///< the part of the user's own file that is for one project (Claude Code)
  project, ///< a file of the project's, that whoever writes the project writes
};

std::string_view to_string(host_scope scope);
std::optional<host_scope> scope_from_string(std::string_view name);

/// A place where a host keeps definitions, or what switches them off.
struct host_location {
  std::vector<std::string> paths; ///< the first one that exists counts
  host_scope scope = host_scope::user;
  bool switches = false; ///< it has no definitions, and it may be missing without a word
};

/// Where a host looks, in the order in which later definitions replace earlier ones: the user's
/// places, or, for a `project` folder, what is for that project alone. None when the host has no
/// such thing.
std::vector<host_location> host_locations(mcp_host host, std::string_view home,
                                          std::string_view project,
                                          const environment_lookup& environment);

/// A host's file as it was read.
struct host_file {
  std::string path;
  std::string text;
  host_scope scope = host_scope::user;
  bool switches = false;
};

/// What a host's files say, in this program's own format.
struct host_servers {
  nlohmann::json servers = nlohmann::json::object(); ///< like `mcpServers`, variables unexpanded
  std::map<std::string, std::string> sources;        ///< the file that gave each of them
  std::vector<config_problem> problems;              ///< what wasn't taken over, and remarks
};

/// Of whom and for what files are read.
struct host_reader_context {
  mcp_host host = mcp_host::claude_code;
  std::string home;    ///< of whoever the files belong to
  std::string project; ///< the folder of the project; empty for the user's own files
  environment_lookup environment;
};

/// The bound on a host's file, in bytes; some keep their history in it.
inline constexpr std::size_t largest_host_file = 32 * mebibyte;

/// Reads a host's files, later ones replacing earlier ones' servers of the same name. Whatever
/// can't be had here (an input asked for at the start, an extension's server, …) is a problem of
/// its entry, which is left out, and so is an entry that restricts its tools in a way that isn't
/// understood; a file that can't be understood is a problem of its own, and the others count. No
/// problem's text holds a value. Never expands a variable.
host_servers read_host_files(const std::vector<host_file>& files,
                             const host_reader_context& context);

} // namespace bulkhead
