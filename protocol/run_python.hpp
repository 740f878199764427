#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/limits.hpp"
#include "protocol/server_config.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// The one tool.
inline constexpr std::string_view run_python_name = "run_python";

/// Its definition for `tools/list`, JSON text. Name, description and input schema, which hosts put
/// into a model's context, take at most 1,400 bytes whatever is configured.
std::string run_python_definition(const settings& config);

/// A call's arguments, checked.
struct python_call {
  std::string code;
  std::vector<std::string> servers; ///< raw names, sorted, without duplicates
  std::chrono::milliseconds timeout{};
  friend bool operator==(const python_call&, const python_call&) = default;
};

/// Reads the arguments of a call, `arguments` being a scanned JSON object or empty. Errors name the
/// argument, what came and what is expected: invalid_argument, too_large, not_found (a server that
/// isn't configured), denied (by policy, naming the rule).
expected<python_call> read_python_call(std::string_view arguments,
                                       const server_catalogue& catalogue, const settings& config,
                                       const limits& bounds);

/// The one of `candidates` that `name` is likely a misspelling of; empty when none is close.
std::string_view closest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates);

} // namespace bulkhead
