#pragma once

#include <string>

#include "main/application.hpp"

namespace bulkhead {

/// The login of the conformance suite's client scenarios: as `bulkhead login` does it, but for the
/// browser. The suite's authorization servers send a visitor back at once, so that a plain request
/// in its place is enough. `context` is the suite's (MCP_CONFORMANCE_CONTEXT), a JSON text or
/// empty. Errors: those of a login.
expected<void> conformance_log_in(application& app, stop_signal& stop, const std::string& url,
                                  const std::string& context);

} // namespace bulkhead
