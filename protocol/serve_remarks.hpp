#pragma once

#include <string>

#include "protocol/tenant_config.hpp"

namespace bulkhead {

/// Adds what is worth a warning about a configuration that was read from `file` and can be used.
void add_remarks(serve_config& config, const std::string& file);

} // namespace bulkhead
