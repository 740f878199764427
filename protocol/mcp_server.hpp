#pragma once

#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/mcp_request.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// What the server answers, as JSON texts of results. Nothing here depends on a connection's past;
/// the form of an answer does depend on the era and revision that the client speaks.

/// How to shape an answer.
struct answer_form {
  bool modern = false;
  /// The legacy revision spoken; meaningless in the modern era.
  std::string_view revision = latest_legacy_revision;

  /// May a tool result carry `structuredContent`? Since 2025-06-18.
  bool structured() const { return modern || revision >= "2025-06-18"; }
};

/// The one resource: the guide to what code in the sandbox can use.
inline constexpr std::string_view capabilities_uri = "bulkhead://capabilities";

/// The answer to `initialize`, for a negotiated revision.
std::string initialize_result(std::string_view revision);

/// The answer to `server/discover`.
std::string discover_result();

/// The answer to `tools/list`: `tool` is the JSON text of the one tool.
std::string tool_list_result(std::string_view tool, const answer_form& form);

/// The answers to `resources/list`, and to a list of which there is nothing (`member` is
/// "prompts" or "resourceTemplates").
std::string resource_list_result(const answer_form& form);
std::string empty_list_result(std::string_view member, const answer_form& form);

/// The answer to `resources/read` for the guide: `guide` followed by the configured servers that
/// policy allows.
std::string capabilities_result(std::string_view guide, const server_catalogue& catalogue,
                                const answer_form& form);

/// The refusal of `resources/read` for a URI that names nothing (-32002, or -32602 in the modern
/// era).
rpc_refusal resource_not_found(std::string_view uri, const answer_form& form);

/// A CallToolResult rendered by `render_call_result`, shaped for the client.
std::string call_result(std::string_view rendered, const answer_form& form);

/// An empty result, e.g. for `ping`; the end of a subscription when `subscription` is its id.
std::string empty_result(const answer_form& form);
std::string subscription_end_result(std::string_view subscription);

/// Parameters of notifications.
std::string progress_params(std::string_view token, std::uint64_t progress,
                            std::string_view message);
std::string subscription_ack_params(std::string_view subscription);
/// `data` is JSON text.
std::string log_params(log_severity severity, std::string_view data);

} // namespace bulkhead
