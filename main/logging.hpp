#pragma once

#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "protocol/settings.hpp"

namespace bulkhead {

/// A logger that writes to stderr, control characters made visible: lines of text, or a JSON object
/// a line.
std::shared_ptr<spdlog::logger> make_logger(log_level level, log_format format = log_format::text);

/// One that writes where `whole` does, and says of each line that it is of this tenant.
std::shared_ptr<spdlog::logger> logger_of_tenant(spdlog::logger& whole, const std::string& tenant);

} // namespace bulkhead
