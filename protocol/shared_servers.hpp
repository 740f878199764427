#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

/// Of a configuration of MCP servers that several tenants share, what one of them may know.
struct selected_servers {
  std::string text;                   ///< JSON: the configuration, without the others' servers
  std::vector<std::string> unmatched; ///< globs that match none of its servers
};

/// Leaves of the text of a configuration file only those servers whose names match one of `globs`
/// (see glob_match); the rest, a policy above all, stays. Errors: those of read_config_json.
expected<selected_servers> select_servers(std::string_view text,
                                          const std::vector<std::string>& globs);

} // namespace bulkhead
