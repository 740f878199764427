#include "protocol/mcp_server.hpp"

#include <fmt/format.h>

#include "protocol/base64.hpp"
#include "protocol/json_text.hpp"
#include "protocol/policy.hpp"
#include "protocol/resource_contents.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

namespace {

/// Shown to people and, by some hosts, to the model, beside the tool's description: it doesn't say
/// that again.
constexpr std::string_view instructions =
    "run_python runs Python that can call the user's MCP servers.";

constexpr std::string_view server_info =
    R"({"name":"bulkhead","title":"Bulkhead","version":")" BULKHEAD_VERSION R"("})";

/// A wall with four windows.
constexpr std::string_view icon =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">)"
    R"(<path fill="#456" d="M3 3h18v18H3z"/>)"
    R"(<path fill="#fff" d="M7 7h4v4H7zm6 0h4v4h-4zM7 13h4v4H7zm6 0h4v4h-4z"/></svg>)";

/// As it is told once, to clients that show it to people.
std::string server_info_in_full() {
  return fmt::format(R"({{"name":"bulkhead","title":"Bulkhead","version":"{}",)"
                     R"("description":"Runs Python in a locked-down container and lets it call )"
                     R"(MCP servers","icons":[{{"src":"data:image/svg+xml;base64,{}",)"
                     R"("mimeType":"image/svg+xml","sizes":["any"]}}]}})",
                     BULKHEAD_VERSION, encode_base64(icon));
}

std::string capabilities(const changing_lists& lists) {
  auto changed = [](bool yes) { return yes ? R"("listChanged":true)" : ""; };
  return fmt::format(R"({{"completions":{{}},"logging":{{}},"prompts":{{{}}},)"
                     R"("resources":{{"subscribe":true{}{}}},"tools":{{{}}}}})",
                     changed(lists.prompts), lists.resources ? "," : "", changed(lists.resources),
                     changed(lists.tools));
}

constexpr std::uint64_t hour_ms = 3'600'000;
constexpr std::uint64_t minute_ms = 60'000;

enum class cache_scope : std::uint8_t { none, shared, personal };

/// Closes a result object whose members so far are `members` (JSON, without braces), adding what
/// the modern era requires of a result.
std::string finish(std::string members, bool modern, cache_scope scope, std::uint64_t ttl_ms = 0,
                   std::string_view self = server_info) {
  auto add = [&members](std::string_view more) {
    members += members.empty() ? "" : ",";
    members += more;
  };
  if (modern) {
    add(R"("resultType":"complete")");
    if (scope != cache_scope::none) {
      add(fmt::format(R"("ttlMs":{},"cacheScope":"{}")", ttl_ms,
                      scope == cache_scope::shared ? "public" : "private"));
    }
    add(fmt::format(R"("_meta":{{"io.modelcontextprotocol/serverInfo":{}}})", self));
  }
  return "{" + members + "}";
}

std::string describe_servers(const server_catalogue& catalogue) {
  std::string text = "\n## Configured servers\n";
  bool any = false;
  for (const auto& entry : catalogue.servers) {
    if (!allows_server(catalogue.rules, entry.name).allowed) {
      continue;
    }
    any = true;
    text += fmt::format("- `{}` → `mcp_{}`", entry.name, entry.alias);
    text += entry.description.empty() ? "\n" : fmt::format(": {}\n", entry.description);
  }
  if (any) {
    return text;
  }
  return text + (catalogue.rules.closed.empty()
                     ? std::string{"None.\n"}
                     : fmt::format("None: {}\n", catalogue.rules.closed));
}

} // namespace

std::string initialize_result(std::string_view revision, const changing_lists& lists) {
  return fmt::format(
      R"({{"protocolVersion":"{}","capabilities":{},"serverInfo":{},"instructions":{}}})", revision,
      capabilities(lists), server_info_in_full(), json_quote(instructions));
}

std::string discover_result(const changing_lists& lists) {
  // Only revisions that a request's _meta may name; older clients send initialize instead.
  return finish(fmt::format(R"("supportedVersions":["{}"],"capabilities":{},"instructions":{})",
                            modern_revision, capabilities(lists), json_quote(instructions)),
                true, cache_scope::shared, hour_ms, server_info_in_full());
}

std::string tool_list_result(std::string_view tool, const answer_form& form) {
  return list_result("tools", tool, form);
}

std::string resource_list_result(const answer_form& form, const resource_page& page, bool first) {
  std::string entries;
  if (first) {
    entries = fmt::format(R"({{"uri":"{}","name":"capabilities",)"
                          R"("title":"Helpers and servers in the sandbox",)"
                          R"("description":"What code run by run_python can use: how to call MCP )"
                          R"(servers, how to find tools, and which servers are configured.",)"
                          R"("mimeType":"text/markdown"}},)"
                          R"({{"uri":"{}","name":"run_python-output",)"
                          R"("title":"Schema of run_python's structured content",)"
                          R"("mimeType":"application/schema+json"}})",
                          capabilities_uri, output_schema_uri);
  }
  for (const auto& each : page.entries) {
    entries += entries.empty() ? "" : ",";
    entries +=
        fmt::format(R"({{"uri":{},"name":{},"mimeType":{},"size":{}}})", json_quote(each.uri),
                    json_quote(each.name), json_quote(each.mime_type), each.bytes);
  }
  auto next =
      page.next.empty() ? std::string{} : fmt::format(R"(,"nextCursor":{})", json_quote(page.next));
  return finish(fmt::format(R"("resources":[{}]{})", entries, next), form.modern,
                cache_scope::personal);
}

std::string template_list_result(const answer_form& form) {
  return finish(
      fmt::format(R"("resourceTemplates":[{{"uriTemplate":"{}","name":"output",)"
                  R"("title":"All that a run wrote",)"
                  R"("description":"stream is stdout or stderr; offset and length, in bytes, )"
                  R"(choose a range of at most 1 MiB."}},{{"uriTemplate":"{}",)"
                  R"("name":"artifact","title":"A file that a run saved",)"
                  R"("description":"Ranges as for output."}}])",
                  output_template, artifact_template),
      form.modern, cache_scope::shared, hour_ms);
}

std::string resource_part_result(const resource_uri& what, resource_part part,
                                 const answer_form& form) {
  auto uri = what.stream ? output_uri(what.handle, *what.stream)
                         : artifact_uri(what.handle, what.artifact);
  return finish(fmt::format(R"("contents":[{}])", part_contents(uri, what.offset, std::move(part))),
                form.modern, cache_scope::personal, minute_ms);
}

std::string list_result(std::string_view member, std::string_view entries,
                        const answer_form& form) {
  return finish(fmt::format(R"("{}":[{}])", member, entries), form.modern, cache_scope::shared,
                hour_ms);
}

std::string plain_result(std::string members, const answer_form& form) {
  return finish(std::move(members), form.modern, cache_scope::none);
}

std::string text_resource_result(std::string_view uri, std::string_view mime_type,
                                 std::string_view text, const answer_form& form) {
  return finish(fmt::format(R"("contents":[{{"uri":{},"mimeType":{},"text":{}}}])", json_quote(uri),
                            json_quote(mime_type), json_quote(text)),
                form.modern, cache_scope::shared, hour_ms);
}

std::string capabilities_result(std::string_view guide, const server_catalogue& catalogue,
                                const answer_form& form) {
  auto text = std::string{guide} + describe_servers(catalogue);
  return finish(fmt::format(R"("contents":[{{"uri":"{}","mimeType":"text/markdown","text":{}}}])",
                            capabilities_uri, json_quote(text)),
                form.modern, cache_scope::personal, minute_ms);
}

rpc_refusal resource_not_found(std::string_view uri, const answer_form& form) {
  return {form.modern ? rpc_code::invalid_params : rpc_code::resource_not_found,
          fmt::format("Resource not found: there is {} and what resources/list tells; what runs "
                      "leave is kept for a day, and less if newer things need the room",
                      capabilities_uri),
          fmt::format(R"({{"uri":{}}})", json_quote(uri))};
}

std::string call_result(std::string_view rendered, const answer_form& form) {
  constexpr std::size_t unbounded = static_cast<std::size_t>(-1);
  auto outline = scan_json(rendered, {unbounded, unbounded, unbounded});
  if (!outline) {
    // Only a fault of the renderer could lead here; a client gets valid JSON all the same.
    auto text = fmt::format("the run's answer could not be shown: {}", outline.error().message);
    return finish(
        fmt::format(R"("content":[{{"type":"text","text":{}}}],"isError":true)", json_quote(text)),
        form.modern, cache_scope::none);
  }
  std::string members;
  for (const auto& member : outline->members) {
    if (member.key == "structuredContent" && !form.structured()) {
      continue;
    }
    members += members.empty() ? "" : ",";
    append_json_string(members, member.key);
    members += ':';
    members += member.value;
  }
  return finish(std::move(members), form.modern, cache_scope::none);
}

std::string result_that_asks(std::string members) {
  return fmt::format(R"({{{},"resultType":"input_required",)"
                     R"("_meta":{{"io.modelcontextprotocol/serverInfo":{}}}}})",
                     members, server_info);
}

std::string empty_result(const answer_form& form) {
  return plain_result({}, form);
}

std::string subscription_end_result(std::string_view subscription) {
  return fmt::format(R"({{"resultType":"complete","_meta":{{)"
                     R"("io.modelcontextprotocol/subscriptionId":{},)"
                     R"("io.modelcontextprotocol/serverInfo":{}}}}})",
                     subscription, server_info);
}

std::string progress_params(std::string_view token, std::uint64_t progress,
                            std::string_view message) {
  return fmt::format(R"({{"progressToken":{},"progress":{},"message":{}}})", token, progress,
                     json_quote(message));
}

std::string log_params(log_severity severity, std::string_view data) {
  return fmt::format(R"({{"level":"{}","logger":"bulkhead","data":{}}})", to_string(severity),
                     data);
}

} // namespace bulkhead
