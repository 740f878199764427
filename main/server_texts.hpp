#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {

/// How a server is reached, for people: `    starts:    COMMAND ARGS` as it would be typed, or
/// `    at:        URL`, secrets masked, and a newline.
std::string entry_text(const server_entry& entry);

/// The same for an entry of a configuration that wasn't read yet; whatever is of the wrong type is
/// left out.
std::string unread_entry_text(const nlohmann::json& entry);

} // namespace bulkhead
