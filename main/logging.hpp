#pragma once

#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "protocol/settings.hpp"

namespace bulkhead {

/// A logger that writes to stderr, control characters made visible.
std::shared_ptr<spdlog::logger> make_logger(log_level level);

/// `text` with control characters other than newline and tab replaced, so that what a guest or a
/// server wrote can't drive the terminal that shows it.
std::string printable(std::string_view text);

} // namespace bulkhead
