#pragma once

#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "protocol/settings.hpp"

namespace bulkhead {

/// A logger that writes to stderr, control characters made visible.
std::shared_ptr<spdlog::logger> make_logger(log_level level);

} // namespace bulkhead
