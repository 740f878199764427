#include "protocol/http_mcp.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "protocol/base64.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/json_text.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {

namespace {

using verdict = tl::expected<void, rpc_refusal>;

constexpr std::string_view version_header = "mcp-protocol-version";
constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

/// Texts of ours have been scanned, or made, within limits already.
constexpr scan_limits unbounded{static_cast<std::size_t>(-1), static_cast<std::size_t>(-1),
                                static_cast<std::size_t>(-1)};

json_outline outline_of(std::string_view text) {
  auto outline = scan_json(text, unbounded);
  return outline ? std::move(*outline) : json_outline{};
}

tl::unexpected<rpc_refusal> mismatch(std::string message) {
  return tl::unexpected<rpc_refusal>({rpc_code::header_mismatch, std::move(message), {}});
}

tl::unexpected<outgoing_answer> bad_request(const rpc_refusal& reason, std::string_view id = {}) {
  return tl::unexpected<outgoing_answer>(
      refusal(400, reason.code, reason.message, id, reason.data));
}

bool is_legacy_revision(std::string_view revision) {
  return negotiate_revision(revision) == revision;
}

/// The header's text once decoded.
tl::expected<std::string, rpc_refusal> header_text(const incoming_request& request,
                                                   std::string_view name) {
  if (request.count(name) != 1) {
    return mismatch(fmt::format("the header {} must be there, once", name));
  }
  auto text = decode_header_value(*request.find(name));
  if (!text) {
    return mismatch(
        fmt::format("the header {} isn't sound base64 of the form =?base64?...?=", name));
  }
  return std::move(*text);
}

verdict must_say(const incoming_request& request, std::string_view name, std::string_view body) {
  auto text = header_text(request, name);
  if (!text) {
    return tl::unexpected{text.error()};
  }
  if (*text != body) {
    return mismatch(fmt::format("the header {} doesn't say what the body says", name));
  }
  return {};
}

/// The name that a request is about; nothing for methods without one.
std::optional<std::string> name_in_body(std::string_view method, const mcp_request& request) {
  if (method == "tools/call" || method == "prompts/get") {
    return request.text("name");
  }
  if (method == "resources/read") {
    return request.text("uri");
  }
  return std::nullopt;
}

/// The text that a header mirrors a value with; nothing for values that no header mirrors.
std::optional<std::string> mirrored_text(std::string_view value) {
  if (is_json_string(value)) {
    return decode_json_string(value);
  }
  if (is_json_integer(value) || value == "true" || value == "false") {
    return std::string{value};
  }
  return std::nullopt;
}

verdict check_mirrors(const incoming_request& request, const mcp_request& call,
                      const mirrored_parameters& mirrored) {
  auto name = call.text("name");
  if (!mirrored || !name) {
    return {};
  }
  auto arguments = outline_of(call.find("arguments"));
  for (const auto& each : mirrored(*name)) {
    auto header = "mcp-param-" + each.header;
    auto value = arguments.find(each.argument);
    if (value.empty() || value == "null") {
      if (request.count(header) > 0) {
        return mismatch(fmt::format("the header {} has no counterpart in the body", header));
      }
      continue;
    }
    auto text = mirrored_text(value);
    if (!text) {
      continue;
    }
    if (auto same = must_say(request, header, *text); !same) {
      return same;
    }
  }
  return {};
}

using read_request = tl::expected<mcp_request, rpc_refusal>;

verdict check_modern(const incoming_request& request, const rpc_message& message,
                     const read_request& read, const mirrored_parameters& mirrored) {
  auto meta = outline_of(outline_of(message.params).find("_meta"));
  auto version = meta.find(version_key);
  if (is_json_string(version)) {
    if (auto same = must_say(request, version_header, decode_json_string(version)); !same) {
      return same;
    }
  }
  if (!read) {
    return tl::unexpected{read.error()};
  }
  if (!read->modern) {
    return tl::unexpected{missing_protocol_version()};
  }
  if (auto same = must_say(request, "mcp-method", message.method); !same) {
    return same;
  }
  if (auto name = name_in_body(message.method, *read)) {
    if (auto same = must_say(request, "mcp-name", *name); !same) {
      return same;
    }
  }
  return message.method == "tools/call" ? check_mirrors(request, *read, mirrored) : verdict{};
}

/// Does the body speak of the modern era?
bool speaks_modern(const rpc_message& message, const read_request& read) {
  // What is refused for its `_meta` is refused as a modern request.
  return read ? read->modern
              : !outline_of(outline_of(message.params).find("_meta")).members.empty();
}

/// Is the revision that the header names another than those of the legacy era?
bool names_modern(const incoming_request& request) {
  const auto* version = request.find(version_header);
  return version != nullptr && !is_legacy_revision(*version);
}

/// Puts `with` in the place of `part`, which points into `text`.
std::string replaced(std::string_view text, std::string_view part, std::string_view with) {
  auto at = static_cast<std::size_t>(part.data() - text.data());
  std::string result;
  result.reserve(text.size() - part.size() + with.size());
  result += text.substr(0, at);
  result += with;
  result += text.substr(at + part.size());
  return result;
}

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The code of an error response; 0 for another message.
int read_code(std::string_view message) {
  auto failure = outline_of(message).find("error");
  auto code = is_json_object(failure) ? outline_of(failure).find("code") : std::string_view{};
  int value = 0;
  std::from_chars(code.data(), code.data() + code.size(), value);
  return value;
}

} // namespace

tl::expected<posted_message, outgoing_answer> read_post(const incoming_request& request,
                                                        const scan_limits& bounds,
                                                        const mirrored_parameters& mirrored) {
  auto message = parse_rpc(request.body, bounds);
  if (!message) {
    std::string id;
    auto reason = explain_unreadable(request.body, message.error(), bounds, id);
    return bad_request(reason, id);
  }
  posted_message posted;
  posted.kind = message->kind;
  posted.id = message->kind == rpc_kind::request ? message->id : std::string{};
  posted.method = message->method;
  bool request_of_ours = message->kind == rpc_kind::request;
  auto read = request_of_ours ? read_mcp_request(*message, bounds)
                              : read_request{tl::unexpected{rpc_refusal{}}};
  bool modern_body = request_of_ours && speaks_modern(*message, read);
  if (message->method == "initialize" && !modern_body) {
    posted.initializes = request_of_ours;
    return posted;
  }
  if (!modern_body && !names_modern(request)) {
    return posted;
  }
  posted.of = posted_message::era::modern;
  if (!request_of_ours) {
    // The era has no notification that a client sends over HTTP, and no response at all; who names
    // a revision that we don't know isn't of that era either.
    return *request.find(version_header) == modern_revision && message->kind != rpc_kind::response
               ? tl::expected<posted_message, outgoing_answer>{posted}
               : bad_request({rpc_code::invalid_request,
                              "MCP-Protocol-Version names no revision that is known here and has "
                              "such messages",
                              {}});
  }
  if (auto sound = check_modern(request, *message, read, mirrored); !sound) {
    return bad_request(sound.error(), posted.id);
  }
  return posted;
}

tl::expected<void, outgoing_answer> check_session_era(const incoming_request& request) {
  const auto* version = request.find(version_header);
  if (version == nullptr || is_legacy_revision(*version)) {
    return {};
  }
  if (*version == modern_revision) {
    auto answer = refusal(405, rpc_code::invalid_request,
                          "this revision of MCP has no sessions and no streams to GET; only POST");
    answer.fields.push_back({"Allow", "POST"});
    return tl::unexpected{std::move(answer)};
  }
  return bad_request({rpc_code::invalid_request,
                      fmt::format("MCP-Protocol-Version must be a revision known here, e.g. {}",
                                  latest_legacy_revision),
                      {}});
}

trace_context trace_of(const incoming_request& request) {
  if (request.count("traceparent") != 1) {
    return {};
  }
  std::string state;
  for (const auto& field : request.fields) {
    if (same_name(field.name, "tracestate")) {
      state += (state.empty() ? "" : ",") + field.value;
    }
  }
  return read_trace_context(*request.find("traceparent"), state);
}

std::optional<std::string> decode_header_value(std::string_view value) {
  constexpr std::string_view begin = "=?base64?";
  constexpr std::string_view end = "?=";
  if (!value.starts_with(begin) || !value.ends_with(end) ||
      value.size() < begin.size() + end.size()) {
    return std::string{value};
  }
  return decode_base64(value.substr(begin.size(), value.size() - begin.size() - end.size()));
}

std::string with_request_id(std::string_view message, std::string_view id) {
  return replaced(message, outline_of(message).find("id"), id);
}

std::string readdressed(std::string_view message, std::string_view ours, std::string_view theirs) {
  auto outline = outline_of(message);
  std::string result{message};
  if (auto id = outline.find("id"); id == ours) {
    result = replaced(message, id, theirs);
  }
  for (std::string_view part : {"params", "result"}) {
    auto again = outline_of(result);
    auto content = again.find(part);
    auto meta = is_json_object(content) ? outline_of(content).find("_meta") : std::string_view{};
    auto named =
        is_json_object(meta) ? outline_of(meta).find(subscription_key) : std::string_view{};
    if (!named.empty() && named == ours) {
      result = replaced(result, named, theirs);
    }
  }
  return result;
}

std::uint32_t status_of_response(std::string_view message) {
  auto code = read_code(message);
  switch (code) {
  case rpc_code::method_not_found:
    return 404;
  case rpc_code::parse_error:
  case rpc_code::invalid_request:
  case rpc_code::header_mismatch:
  case rpc_code::missing_client_capability:
  case rpc_code::unsupported_protocol_version:
    return 400;
  default:
    return 200;
  }
}

std::string overload_data(std::chrono::seconds again) {
  return fmt::format(R"({{"reason":"overloaded","retryAfterSeconds":{}}})", again.count());
}

std::optional<std::chrono::seconds> overload_wait(std::string_view message) {
  auto failure = outline_of(message).find("error");
  auto data = is_json_object(failure) ? outline_of(failure).find("data") : std::string_view{};
  auto read = is_json_object(data) ? outline_of(data) : json_outline{};
  auto again = read_number(read.find("retryAfterSeconds"));
  return read.find("reason") == R"("overloaded")" && again
             ? std::optional{std::chrono::seconds{*again}}
             : std::nullopt;
}

bool is_response(std::string_view message) {
  return outline_of(message).find("method").empty();
}

bool is_error_response(std::string_view message) {
  return !outline_of(message).find("error").empty();
}

std::string encode_event(std::string_view id, std::string_view message) {
  while (message.ends_with('\n') || message.ends_with('\r')) {
    message.remove_suffix(1);
  }
  std::string event;
  event.reserve(message.size() + id.size() + 32);
  event += "event: message\n";
  if (!id.empty()) {
    event += "id: ";
    event += id;
    event += '\n';
  }
  event += "data: ";
  event += message;
  event += "\n\n";
  return event;
}

std::string encode_priming_event(std::string_view id) {
  return fmt::format("id: {}\ndata: \n\n", id);
}

std::string encode_retry(std::uint32_t milliseconds) {
  return fmt::format("retry: {}\n\n", milliseconds);
}

std::string encode_keep_alive() {
  return ":\n\n";
}

std::string to_string(event_place place) {
  return fmt::format("{}-{}", place.stream, place.event);
}

std::optional<event_place> read_event_place(std::string_view id) {
  auto dash = id.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  auto stream = read_number(id.substr(0, dash));
  auto event = read_number(id.substr(dash + 1));
  if (!stream || !event) {
    return std::nullopt;
  }
  return event_place{*stream, *event};
}

} // namespace bulkhead
