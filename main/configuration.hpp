#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "main/account.hpp"
#include "protocol/server_config.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// A variable of the process environment.
std::optional<std::string> environment_variable(std::string_view name);

/// The names of all variables of the process environment.
std::vector<std::string> environment_names();

/// Reads STATE_DIR/*.json in the order of their names, then MCP_SERVERS_CONFIG. Files that can't be
/// read, or that others could have written, are problems of the catalogue and close its policy.
server_catalogue load_catalogue(const settings& config, const account& who,
                                const std::string& executable);

} // namespace bulkhead
