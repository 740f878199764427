#include "protocol/mcp_http.hpp"

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/upstream_text.hpp"

namespace bulkhead::upstream {

namespace {

constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
constexpr std::size_t shown_body = 200;

/// The members of scanned text.
json_outline outline_of(std::string_view json) {
  constexpr auto unbounded = static_cast<std::size_t>(-1);
  auto outline = scan_json(json, {unbounded, unbounded, unbounded});
  return outline ? std::move(*outline) : json_outline{};
}

std::string_view reason_phrase(std::uint32_t status) {
  switch (status) {
  case 400:
    return " Bad Request";
  case 401:
    return " Unauthorized";
  case 403:
    return " Forbidden";
  case 404:
    return " Not Found";
  case 405:
    return " Method Not Allowed";
  case 429:
    return " Too Many Requests";
  case 500:
    return " Internal Server Error";
  case 502:
    return " Bad Gateway";
  case 503:
    return " Service Unavailable";
  case 504:
    return " Gateway Timeout";
  default:
    return "";
  }
}

} // namespace

expected<outgoing_message> read_outgoing(std::string_view line, const scan_limits& bounds) {
  auto message = parse_rpc(line, bounds);
  if (!message) {
    return tl::unexpected{message.error()};
  }
  outgoing_message result;
  result.kind = message->kind;
  result.method = message->method;
  if (result.kind == rpc_kind::request) {
    result.id = response_id(message->id).value_or(0);
  }
  if (message->params.empty()) {
    return result;
  }
  auto params = outline_of(message->params);
  result.meta = params.find("_meta");
  result.modern = !result.meta.empty() && !outline_of(result.meta).find(version_key).empty();
  if (result.method == "tools/call") {
    result.tool = decode_json_string(params.find("name"));
    result.arguments = params.find("arguments");
  } else if (result.method == "notifications/cancelled") {
    result.cancels = response_id(params.find("requestId")).value_or(0);
  }
  return result;
}

body_kind kind_of_body(std::string_view content_type) {
  auto type = lower_case(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) {
    type.pop_back();
  }
  if (type.empty()) {
    return body_kind::none;
  }
  if (type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"))) {
    return body_kind::json;
  }
  return type == "text/event-stream" ? body_kind::events : body_kind::other;
}

std::string error_line(std::string_view body, std::uint64_t id, const scan_limits& bounds) {
  auto message = parse_rpc(body, bounds);
  if (!message || message->kind != rpc_kind::response || message->error.empty()) {
    return {};
  }
  auto of = response_id(message->id);
  if (!message->id.empty() && message->id != "null" && of != id) {
    return {};
  }
  auto line = fmt::format(R"({{"jsonrpc":"2.0","id":{},"error":)", id);
  append_json_line(line, message->error);
  return line + "}\n";
}

bool ends_session(std::uint32_t status, std::string_view body) {
  return status == 404 || (status == 400 && contains_ignoring_case(body, "session"));
}

std::string describe_status(std::uint32_t status, body_kind kind, std::string_view body) {
  auto text = fmt::format("HTTP {}{}", status, reason_phrase(status));
  auto start = body.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && kind != body_kind::events && body[start] != '<') {
    text += ": " + printable(body.substr(start), shown_body);
  }
  return text;
}

std::string encode_listen(std::string_view meta) {
  return encode_request(
      "\"listen\"", "subscriptions/listen",
      fmt::format(R"({{"notifications":{{"toolsListChanged":true}},"_meta":{}}})", meta));
}

bool announces_tool_changes(std::string_view result) {
  auto tools = outline_of(outline_of(outline_of(result).find("capabilities")).find("tools"));
  return tools.find("listChanged") == "true";
}

std::string agreed_revision(std::string_view result) {
  return decode_json_string(outline_of(result).find("protocolVersion"));
}

} // namespace bulkhead::upstream
