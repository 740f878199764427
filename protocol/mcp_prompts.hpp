#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/mcp_request.hpp"
#include "protocol/mcp_server.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// The one prompt, which people start from a menu of their host: how to use Bulkhead.
inline constexpr std::string_view prompt_name = "use-bulkhead";

/// Its definition for `prompts/list`, JSON text.
std::string prompt_definition();

/// The answer to `prompts/get`. Refuses (-32602) other prompts and arguments that are no strings.
tl::expected<std::string, rpc_refusal> prompt_result(const mcp_request& request,
                                                     const server_catalogue& catalogue,
                                                     const answer_form& form);

/// What `completion/complete` asks for.
struct completion_request {
  enum class what : std::uint8_t {
    nothing,  ///< there is nothing to suggest, e.g. for a task
    server,   ///< names of configured servers
    stream,   ///< stdout, stderr
    handle,   ///< of runs that left an output, or artifacts
    artifact, ///< names of what a run left
  };
  what of = what::nothing;
  std::string begun;    ///< what has been typed
  std::string handle;   ///< of the run, for an artifact's name; empty: any
  bool outputs = false; ///< handles of outputs rather than of artifacts
};

/// Reads a request for completion. Refuses (-32602) what is no such request, and prompts, templates
/// and arguments that don't exist.
tl::expected<completion_request, rpc_refusal> read_completion(const mcp_request& request);

/// The servers that policy allows, for a completion.
std::vector<std::string> completed_servers(const server_catalogue& catalogue);

/// What of things that runs left fits a request for a handle or an artifact.
std::vector<std::string> completed_resources(const completion_request& asked,
                                             const std::vector<resource_entry>& entries);

/// The answer: those of `values` that begin with what was typed, whatever the case, at most 100 of
/// them (2025-11-25, server/utilities/completion "Completion Results").
std::string completion_result(const completion_request& asked,
                              const std::vector<std::string>& values, const answer_form& form);

} // namespace bulkhead
