#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "main/account.hpp"
#include "protocol/tenant_config.hpp"

namespace bulkhead {

/// The path of the file with the tenants: what the command line names (`given`), else
/// MCP_BRIDGE_SERVE_CONFIG, else STATE_DIR/bulkhead.toml.
std::string serve_file_path(const std::string& given, const settings& config);

/// Its text, provided that nobody but the account and root can have written it. Errors, with its
/// name: those of read_trusted_file.
expected<std::string> read_serve_file(const std::string& path, const settings& config,
                                      const account& who);

/// What it says. Errors: the same, and those of read_serve_config.
tl::expected<serve_config, std::vector<error>>
load_serve_file(const std::string& path, const settings& config, const account& who);

/// There is no tenant `name` in the file: not_found, with what may have been meant.
tl::unexpected<error> no_such_tenant(const serve_config& config, const std::string& name,
                                     const std::string& path);

/// The tenant `name` of the file, which has a state folder already. Errors: not_found; the first of
/// load_serve_file's.
expected<tenant> load_tenant(const std::string& path, const std::string& name,
                             const settings& config, const account& who);

/// Puts what `change` makes of its text in its place, in one go, while no other process does so;
/// its mode stays. With `make` it need not be there: `change` gets an empty text then, and the file
/// is closed to others. Errors: those of `change` and of read_serve_file; unavailable when it can't
/// be written.
expected<void>
change_serve_file(const std::string& path, const settings& config, const account& who, bool make,
                  const std::function<expected<std::string>(std::string_view text)>& change);

} // namespace bulkhead
