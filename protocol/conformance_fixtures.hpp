#pragma once

#include <memory>

#include "protocol/served_things.hpp"

namespace bulkhead {

/// The tools, prompts and resources that the scenarios of MCP's conformance suite call by name
/// (@modelcontextprotocol/conformance, "server"). For tests; nothing else makes them.
std::shared_ptr<const served_things> conformance_fixtures();

} // namespace bulkhead
