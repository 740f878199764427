#include "protocol/mcp_client_protocol.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/ascii.hpp"
#include "protocol/upstream_text.hpp"

namespace bulkhead::upstream {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> legacy_revisions = {
    latest_legacy_revision, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"};

constexpr std::string_view client_info =
    R"({"name":"bulkhead","version":")" BULKHEAD_VERSION R"("})";

/// What every modern request carries (2026-07-28, "Request metadata"), as members of `_meta`.
std::string modern_meta(const client_abilities& abilities) {
  return fmt::format(R"("io.modelcontextprotocol/protocolVersion":"{}",)"
                     R"("io.modelcontextprotocol/clientCapabilities":{},)"
                     R"("io.modelcontextprotocol/clientInfo":{})",
                     modern_revision, to_json(abilities), client_info);
}

/// The trace that a call is a part of, as further members.
std::string trace_meta(const trace_context& trace) {
  std::string result;
  if (!trace.parent.empty()) {
    result += fmt::format(R"(,"traceparent":{})", json_quote(trace.parent));
  }
  if (!trace.state.empty()) {
    result += fmt::format(R"(,"tracestate":{})", json_quote(trace.state));
  }
  return result;
}

/// A tree of scanned text; discarded if it holds a number that no double can.
json parse(std::string_view text) {
  return json::parse(text.begin(), text.end(), nullptr, false);
}

const json& member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) {
    return none;
  }
  auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_member(const json& object, const char* key, std::size_t most = 128) {
  const auto& value = member(object, key);
  return value.is_string() ? printable(value.get_ref<const std::string&>(), most) : std::string{};
}

bool names(const json& revisions, std::string_view revision) {
  return revisions.is_array() &&
         std::any_of(revisions.begin(), revisions.end(), [&](const json& each) {
           return each.is_string() && each.get_ref<const std::string&>() == revision;
         });
}

identity identity_of(const json& info, const json& capabilities, std::string_view revision) {
  return {text_member(info, "name"), text_member(info, "title"), text_member(info, "version"),
          std::string{revision}, capabilities.is_object() && capabilities.contains("tools")};
}

/// What a call that is made again carries besides (2026-07-28, "Multi Round-Trip Requests").
void append_input(std::string& line, const call_details& details) {
  std::string_view before = R"(,"inputResponses":{)";
  for (const auto& [key, result] : details.responses) {
    line += before;
    before = ",";
    append_json_string(line, key);
    line += ':';
    append_json_line(line, result);
  }
  line += details.responses.empty() ? "" : "}";
  if (!details.state.empty()) {
    line += R"(,"requestState":)";
    line += details.state;
  }
}

/// The capabilities or pages that an error names as missing.
std::string needs_of(std::int64_t code, const json& data) {
  std::string needs;
  if (code == rpc_code::missing_client_capability) {
    const auto& required = member(data, "requiredCapabilities");
    for (auto each = required.begin(); required.is_object() && each != required.end(); ++each) {
      needs += (needs.empty() ? "" : ", ") + each.key();
    }
    return printable("a client with " + (needs.empty() ? "more capabilities" : needs), 256);
  }
  if (code == rpc_code::url_elicitation_required) {
    const auto& pages = member(data, "elicitations");
    auto url = pages.is_array() && !pages.empty() ? text_member(pages[0], "url", 2048) : "";
    return "somebody to open " + (url.empty() ? "a page" : url);
  }
  return {};
}

} // namespace

std::string encode_discover(std::uint64_t id, const client_abilities& abilities) {
  return encode_request(std::to_string(id), "server/discover",
                        fmt::format(R"({{"_meta":{{{}}}}})", modern_meta(abilities)));
}

std::string encode_initialize(std::uint64_t id, const client_abilities& abilities) {
  return encode_request(std::to_string(id), "initialize",
                        fmt::format(R"({{"protocolVersion":"{}","capabilities":{},)"
                                    R"("clientInfo":{}}})",
                                    latest_legacy_revision, to_json(abilities), client_info));
}

std::string encode_initialized() {
  return encode_notification("notifications/initialized", {});
}

std::string encode_list(std::uint64_t id, era generation, std::string_view cursor,
                        const client_abilities& abilities) {
  std::string params = "{";
  if (!cursor.empty()) {
    params += R"("cursor":)";
    append_json_string(params, cursor);
  }
  if (generation == era::modern) {
    params += cursor.empty() ? "" : ",";
    params += fmt::format(R"("_meta":{{{}}})", modern_meta(abilities));
  }
  return encode_request(std::to_string(id), "tools/list", params + "}");
}

std::string encode_call(std::uint64_t id, era generation, std::string_view tool,
                        std::string_view arguments, const call_details& details) {
  // Built in one go: arguments may be large.
  std::string line;
  line.reserve(arguments.size() + tool.size() + 512);
  fmt::format_to(std::back_inserter(line),
                 R"({{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":)", id);
  append_json_string(line, tool);
  line += R"(,"arguments":)";
  append_json_line(line, arguments);
  append_input(line, details);
  std::string meta = generation == era::modern ? modern_meta(details.abilities) : std::string{};
  if (generation == era::modern) {
    meta += trace_meta(details.trace);
  }
  if (details.progress) {
    meta += fmt::format(R"({}"progressToken":{})", meta.empty() ? "" : ",", id);
  }
  if (!meta.empty()) {
    fmt::format_to(std::back_inserter(line), R"(,"_meta":{{{}}})", meta);
  }
  return line += "}}\n";
}

std::string encode_cancelled(std::uint64_t id, std::string_view reason) {
  return encode_notification(
      "notifications/cancelled",
      fmt::format(R"({{"requestId":{},"reason":{}}})", id, json_quote(reason)));
}

std::string answer_request(const rpc_message& request, const std::vector<std::string>& roots) {
  if (request.method == "ping") {
    return encode_result(request.id, "{}");
  }
  if (request.method == "roots/list" && !roots.empty()) {
    return encode_result(request.id, roots_result(roots));
  }
  return encode_error(
      request.id, rpc_code::method_not_found,
      fmt::format("Bulkhead offers this server no \"{}\"", printable(request.method, 128)));
}

std::optional<std::uint64_t> response_id(std::string_view id) {
  std::uint64_t number = 0;
  auto [end, failure] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (failure != std::errc{} || end != id.data() + id.size()) {
    return std::nullopt;
  }
  return number;
}

std::optional<identity> read_discover(const rpc_message& answer) {
  if (!answer.result.empty()) {
    auto result = parse(answer.result);
    if (!names(member(result, "supportedVersions"), modern_revision)) {
      return std::nullopt;
    }
    const auto& meta = member(result, "_meta");
    return identity_of(member(meta, "io.modelcontextprotocol/serverInfo"),
                       member(result, "capabilities"), modern_revision);
  }
  identity unnamed;
  unnamed.revision = modern_revision;
  switch (read_failure(answer.error).code) {
  case rpc_code::header_mismatch:
  case rpc_code::missing_client_capability:
    return unnamed;
  case rpc_code::unsupported_protocol_version: {
    auto reason = parse(answer.error);
    const auto& supported = member(member(reason, "data"), "supported");
    return !supported.is_array() || names(supported, modern_revision)
               ? std::optional{std::move(unnamed)}
               : std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

expected<identity> read_initialize(std::string_view result) {
  auto tree = parse(result);
  const auto& revision = member(tree, "protocolVersion");
  if (!revision.is_string()) {
    return fail(errc::malformed, "its answer to \"initialize\" has no protocolVersion");
  }
  const auto& text = revision.get_ref<const std::string&>();
  if (std::find(legacy_revisions.begin(), legacy_revisions.end(), text) == legacy_revisions.end()) {
    return fail(errc::server_failed,
                fmt::format("it speaks MCP revision \"{}\", which Bulkhead doesn't know; known are "
                            "{} and {} to {}",
                            printable(text, 64), modern_revision, legacy_revisions.front(),
                            legacy_revisions.back()));
  }
  return identity_of(member(tree, "serverInfo"), member(tree, "capabilities"), text);
}

failure read_failure(std::string_view error) {
  auto tree = parse(error);
  const auto& code = member(tree, "code");
  const auto& message = member(tree, "message");
  failure result;
  result.code = code.is_number_integer() ? code.get<std::int64_t>() : 0;
  if (message.is_string()) {
    result.message = printable(message.get_ref<const std::string&>(), 1024);
  }
  result.needs = needs_of(result.code, member(tree, "data"));
  return result;
}

bool tells_unknown_tool(const failure& reason, std::string_view tool) {
  const auto text = lower_case(reason.message);
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (says("unknown tool") || says("no such tool") || says("tool not found")) {
    return true;
  }
  return says("tool") && says("not found") && says(lower_case(tool));
}

std::optional<std::chrono::milliseconds> read_time_to_live(std::string_view result) {
  constexpr std::int64_t least = 30'000;
  constexpr std::int64_t most = 3'600'000;
  auto outline = scan_json(result, {result.size()});
  if (!outline || !is_json_integer(outline->find("ttlMs"))) {
    return std::nullopt;
  }
  // A number of more digits than fit is a long time.
  auto given = response_id(outline->find("ttlMs"));
  auto value = given ? static_cast<std::int64_t>(std::min<std::uint64_t>(*given, most)) : most;
  return std::chrono::milliseconds{std::clamp(value, least, most)};
}

} // namespace bulkhead::upstream
