#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/policy.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// How a server is reached.
enum class server_transport : std::uint8_t {
  stdio,
  http, ///< Streamable HTTP
  sse,  ///< HTTP with server-sent events, as until 2024-11-05
};

/// How a login to a server is made where its user has a client of their own there.
struct server_oauth {
  std::string client_id;
  std::string client_secret;
  std::string client_document;     ///< the URL of a client-id metadata document
  std::string scope;               ///< parted by spaces
  std::uint16_t callback_port = 0; ///< 0: any
  friend bool operator==(const server_oauth&, const server_oauth&) = default;
};

/// One upstream MCP server as a user configured it, variables expanded.
struct server_entry {
  std::string name;
  std::string alias; ///< a Python identifier, unique among all entries
  std::string command;
  std::vector<std::string> args;
  /// The arguments as the file has them, variables unexpanded, secrets masked: to be shown.
  std::vector<std::string> shown_args = {};
  std::map<std::string, std::string> env;
  std::string cwd;
  std::string description;
  std::string source; ///< the file that gave it
  std::chrono::milliseconds start_timeout{60'000};
  std::chrono::milliseconds call_timeout{60'000};
  server_transport transport = server_transport::stdio;
  std::string url = {};       ///< of a server that isn't started by us
  std::string shown_url = {}; ///< the same, variables unexpanded, secrets masked: to be shown
  std::map<std::string, std::string> headers = {}; ///< for each request to it
  server_oauth oauth = {};
  std::vector<std::string> roots = {}; ///< file:// URIs that the server may know of
  std::uint32_t most_calls = 16;       ///< at once; more wait
  friend bool operator==(const server_entry&, const server_entry&) = default;
};

/// An error is something that couldn't be used as its author meant it; a remark is worth knowing.
enum class problem_kind : std::uint8_t { error, remark };
std::string_view to_string(problem_kind kind);

/// Something in a file that could not be used, or is worth knowing; the rest was.
struct config_problem {
  std::string file;
  std::string entry; ///< empty when it concerns the whole file
  std::string message;
  problem_kind kind = problem_kind::error;
  friend bool operator==(const config_problem&, const config_problem&) = default;
};

/// A problem in one line: file, entry, message.
std::string to_text(const config_problem& problem);

/// An entry that its author switched off.
struct disabled_server {
  std::string name;
  std::string source; ///< the file that gave it
  friend bool operator==(const disabled_server&, const disabled_server&) = default;
};

/// What became of a definition.
enum class definition_state : std::uint8_t { used, disabled, unusable, shadowed, itself };
std::string_view to_string(definition_state state);

/// A server that a file defines.
struct source_server {
  std::string name;
  definition_state state = definition_state::used;
  std::string shadowed_by = {}; ///< the file whose definition counts instead
  friend bool operator==(const source_server&, const source_server&) = default;
};

/// A file that was read, and what it gave.
struct config_source {
  std::string path;
  std::string host = {}; ///< for people; the program whose file this links to
  std::vector<source_server> servers = {};
  friend bool operator==(const config_source&, const config_source&) = default;
};

/// What the configuration files say together.
struct server_catalogue {
  std::vector<server_entry> servers; ///< sorted by name
  policy rules;
  std::vector<config_problem> problems;
  std::vector<disabled_server> disabled = {}; ///< sorted by name
  std::vector<config_source> sources = {};    ///< in the order in which they were read

  /// Is one of the problems an error?
  bool has_errors() const;

  /// The entry called `name` (raw name or alias), or null.
  const server_entry* find(std::string_view name) const;

  /// The raw names of those that policy allows.
  std::vector<std::string> allowed_servers() const;

  friend bool operator==(const server_catalogue&, const server_catalogue&) = default;
};

/// What is known of another program's files besides their translation.
struct imported_file {
  std::string host;                           ///< the program, for people
  std::map<std::string, std::string> sources; ///< the file that gave each server
  std::vector<config_problem> problems;       ///< from translating it
};

/// A file as it was read: path and text, or why it couldn't or mustn't be read.
struct config_file {
  std::string path;
  std::string text;
  std::string refusal = {};
  /// The text is another program's, translated. Such a file has no policy, so that one which can't
  /// be understood is an error but closes nothing.
  std::optional<imported_file> imported = {};
};

/// Reads a file that an entry refers to. `bound`: its content is known beforehand and compared, so
/// that it doesn't matter who may write to it.
using file_lookup = std::function<expected<std::string>(const std::string& path, bool bound)>;

/// Decides whether a command would start Bulkhead itself.
struct self_check {
  std::string own_path; ///< the running executable, canonical
  bool allowed = false; ///< MCP_BRIDGE_ALLOW_SELF_SERVER
  /// Resolves a command by PATH and symbolic links, so that a link to `own_path` is seen; empty:
  /// names alone decide. Answers an empty text for what isn't found.
  std::function<std::string(const std::string& command)> canonical;
};

/// Would this command start Bulkhead, or the bridge that it takes the place of, by its name, its
/// path, or through a launcher such as npx, uvx, env or `sh -c`? Folders named like the program
/// among a server's own arguments don't count. `self.allowed` isn't looked at.
bool starts_self(const self_check& self, const std::string& command,
                 const std::vector<std::string>& args);

/// Bounds on configuration files, in bytes.
inline constexpr std::size_t largest_config_file = 4 * mebibyte;
inline constexpr std::size_t longest_server_name = 128;

/// Reads files in order (a later file's entry of the same name shadows an earlier one, which is
/// reported, even if the later one is disabled or unusable). Accepts `mcpServers` (or `servers`)
/// objects, comments and trailing commas; expands `${VAR}` and `${VAR:-default}` in command, args,
/// env values, cwd, url and headers, and `~/` at the start of command and cwd. An unset `${VAR}`
/// without default is a problem of its entry, which is skipped; so are entries that misspell what
/// they must not be used without or restrict tools in a way that isn't understood, and those
/// that would start Bulkhead itself. Disabled entries are listed apart. `envVars` are names of
/// variables that are handed on if they are set, `envFile` is a file of NAME=VALUE lines (with
/// `envFileSha256`: with exactly that content), `includeTools` and `excludeTools` narrow the
/// policy. No problem's text holds a value of `env` or an argument.
///
/// `policy` objects (see read_policy) of all files are put together. One that can't be
/// understood or is misspelled, and any file that can't be read or understood, closes the policy: a
/// slip in a deny list must not allow what it was to forbid.
server_catalogue read_server_config(const std::vector<config_file>& files,
                                    const environment_lookup& environment, std::string_view home,
                                    const self_check& self, const file_lookup& referred = {});

/// Turns JSON with // and /* */ comments and trailing commas into plain JSON of the same length
/// and line structure, so that error positions stay right.
std::string strip_json_comments(std::string_view text);

/// A Python identifier for `name`: other characters become `_`, keywords get a trailing `_`.
std::string python_identifier(std::string_view name);

/// Identifiers for all of `names`, in order; where two collide, each of them gets a suffix that
/// depends on its raw name alone, so that it stays the same when others come and go.
std::vector<std::string> python_aliases(const std::vector<std::string>& names);

} // namespace bulkhead
