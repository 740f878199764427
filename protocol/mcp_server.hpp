#pragma once

#include <string>
#include <string_view>

#include "protocol/artifact.hpp"
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

/// The resource that is always there: the guide to what code in the sandbox can use.
inline constexpr std::string_view capabilities_uri = "bulkhead://capabilities";

/// The lists that may be others while a session lasts. Of resources there are more whenever a run
/// leaves something.
struct changing_lists {
  bool tools = false;
  bool prompts = false;
  bool resources = true;
};

/// The answer to `initialize`, for a negotiated revision.
std::string initialize_result(std::string_view revision, const changing_lists& lists = {});

/// The answer to `server/discover`.
std::string discover_result(const changing_lists& lists = {});

/// The answer to `tools/list`: `tool` is the JSON text of the one tool.
std::string tool_list_result(std::string_view tool, const answer_form& form);

/// The answer to `resources/list`: the guide, unless it was on a page before, and what runs left.
std::string resource_list_result(const answer_form& form, const resource_page& page = {},
                                 bool first = true);

/// The answer to `resources/templates/list`.
std::string template_list_result(const answer_form& form);

/// The answer to `resources/read` of what a run left. `contents` has the bytes, as `text` if they
/// are UTF-8, else as `blob`; they begin at `what.offset`. A part whose end would split a character
/// of a text ends up to three bytes sooner. `_meta` of it has, as "bulkhead/range", {offset, bytes,
/// keptBytes, totalBytes} and, where more is kept, `nextOffset`; `notKept` is why not all of it is
/// kept. A second, text item says the same for readers, if there is more or something is missing.
std::string resource_part_result(const resource_uri& what, resource_part part,
                                 const answer_form& form);

/// The answer to `resources/read` of a text that every client may see and that doesn't change.
std::string text_resource_result(std::string_view uri, std::string_view mime_type,
                                 std::string_view text, const answer_form& form);

/// Any other result, whose members are `members` (JSON without braces).
std::string plain_result(std::string members, const answer_form& form);

/// A list that is the same for all clients and has one page; `entries` is JSON without brackets.
std::string list_result(std::string_view member, std::string_view entries, const answer_form& form);

/// The answer to `resources/read` for the guide: `guide` followed by the configured servers that
/// policy allows.
std::string capabilities_result(std::string_view guide, const server_catalogue& catalogue,
                                const answer_form& form);

/// The refusal of `resources/read` for a URI that names nothing (-32002, or -32602 in the modern
/// era).
rpc_refusal resource_not_found(std::string_view uri, const answer_form& form);

/// A CallToolResult rendered by `render_call_result`, shaped for the client.
std::string call_result(std::string_view rendered, const answer_form& form);

/// A result of the modern era that asks the client for more; `members` is JSON without braces.
std::string result_that_asks(std::string members);

/// An empty result, e.g. for `ping`; the end of a subscription when `subscription` is its id.
std::string empty_result(const answer_form& form);
std::string subscription_end_result(std::string_view subscription);

/// Parameters of notifications.
std::string progress_params(std::string_view token, std::uint64_t progress,
                            std::string_view message);
/// `data` is JSON text.
std::string log_params(log_severity severity, std::string_view data);

} // namespace bulkhead
