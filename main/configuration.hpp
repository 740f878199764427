#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/trusted_file.hpp"
#include "main/account.hpp"
#include "protocol/server_config.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// A variable of the process environment.
std::optional<std::string> environment_variable(std::string_view name);

/// The names of all variables of the process environment.
std::vector<std::string> environment_names();

/// The path of this program, links resolved.
std::string own_executable();

/// What the configuration files say, and which files that depends on.
struct loaded_configuration {
  server_catalogue catalogue;
  /// Files and folders whose change can make it another one, also those that aren't there.
  std::vector<std::string> dependencies;
};

/// A file with servers that are run once for several tenants.
struct shared_file {
  std::string path;
  /// Globs: the servers that a tenant may use. Nothing: all, for whoever runs them.
  std::optional<std::vector<std::string>> only;
  trust allowed; ///< who may have written it
};

struct load_options {
  /// Other programs' definitions don't count, linked or copied: for serving more than one user.
  bool own_only = false;
  /// Taken in place of what the file of that path holds, or as if it were there.
  std::map<std::string, config_file> instead = {};
  /// Read first, so that an own server of the same name counts instead.
  std::optional<shared_file> shared = {};
  bool only_shared = false; ///< no other file is read
};

/// Who may have written what decides here: the account, root, and never a guest.
trust trusted_by(const settings& config, const account& who);

/// Reads STATE_DIR/*.json in the order of their names, then MCP_SERVERS_CONFIG, and what they link
/// to. Files that can't be read, or that others could have written, are problems of the catalogue
/// and close its policy. Reads files, so never on the thread of an actor.
loaded_configuration load_configuration(const settings& config, const account& who,
                                        const std::string& executable,
                                        const load_options& options = {});

} // namespace bulkhead
