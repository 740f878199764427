#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "main/account.hpp"
#include "protocol/server_config.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// A variable of the process environment.
std::optional<std::string> environment_variable(std::string_view name);

/// A file's text. Errors: not_found or unavailable with the path and the cause, too_large over
/// `most` bytes.
expected<std::string> read_file(const std::string& path, std::size_t most);

/// What comes from an open descriptor of any kind until its end. Errors: like `read_file`; `what`
/// names it.
expected<std::string> read_descriptor(int fd, const std::string& what, std::size_t most);

/// Reads STATE_DIR/*.json in the order of their names, then MCP_SERVERS_CONFIG. Files that can't be
/// read are problems of the catalogue.
server_catalogue load_catalogue(const settings& config, const std::string& home,
                                const std::string& executable);

} // namespace bulkhead
