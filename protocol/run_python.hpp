#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/limits.hpp"
#include "protocol/server_config.hpp"
#include "protocol/settings.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

/// The one tool.
inline constexpr std::string_view run_python_name = "run_python";

/// Its definition for `tools/list`, JSON text. Name, description and input schema, which hosts put
/// into a model's context, take at most 1,400 bytes whatever is configured. The output schema,
/// which some put there too, is in it only if the settings want it.
std::string run_python_definition(const settings& config);

/// The JSON Schema of the `structuredContent` of its results.
std::string run_python_output_schema();

/// Where a client finds that schema; the definition's `_meta` names it as "bulkhead/outputSchema".
inline constexpr std::string_view output_schema_uri = "bulkhead://schemas/run_python/output";

/// A call's arguments, checked.
struct python_call {
  std::string code;
  std::vector<std::string> servers; ///< raw names, sorted, without duplicates
  std::chrono::milliseconds timeout{};
  std::string session;             ///< empty: none; "new", or what may be a handle
  bool reset = false;              ///< the session begins afresh
  std::vector<input_file> files{}; ///< see read_input_files
  friend bool operator==(const python_call&, const python_call&) = default;
};

/// The raw name of the server that `name`, a raw name or an alias, stands for. Errors, with what it
/// may have been meant to be: invalid_argument, not_found, denied (naming the rule).
expected<std::string> find_server(std::string_view name, const server_catalogue& catalogue);

/// Reads the arguments of a call, `arguments` being a scanned JSON object or empty. Errors name the
/// argument, what came and what is expected: invalid_argument, too_large, not_found (a server that
/// isn't configured), denied (by policy, naming the rule).
expected<python_call> read_python_call(std::string_view arguments,
                                       const server_catalogue& catalogue, const settings& config,
                                       const limits& bounds);

} // namespace bulkhead
