#include "protocol/wire.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "protocol/artifact.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_members.hpp"
#include "protocol/json_scan.hpp"

namespace bulkhead {

namespace {

using parsed_frame = expected<std::variant<guest_frame, refused_call>>;

scan_limits scan_limits_of(const limits& bounds) {
  return {bounds.line, bounds.json_depth, bounds.json_nodes};
}

tl::unexpected<error> oversized(std::string_view what, std::size_t size, std::size_t limit) {
  return fail(errc::too_large,
              fmt::format("{} of {} bytes is over the limit of {} bytes", what, size, limit));
}

tl::unexpected<error> failure_of(const json_members& members) {
  return tl::unexpected<error>(members.reason());
}

parsed_frame parse_ready(const json_outline& frame, const limits& bounds) {
  if (frame.text.size() > bounds.control_frame) {
    return oversized("a ready frame", frame.text.size(), bounds.control_frame);
  }
  json_members members{frame, "a ready frame", errc::malformed};
  guest_ready ready;
  ready.python = members.text("python", wire_name_limit);
  ready.protocol = static_cast<std::uint32_t>(members.number("protocol", 1, 1'000'000));
  if (!members.sound()) {
    return failure_of(members);
  }
  return guest_frame{std::move(ready)};
}

parsed_frame parse_started(const json_outline& frame, const limits& bounds) {
  if (frame.text.size() > bounds.control_frame) {
    return oversized("a started frame", frame.text.size(), bounds.control_frame);
  }
  json_members members{frame, "a started frame", errc::malformed};
  guest_started started{members.text("id", wire_name_limit)};
  if (!members.sound()) {
    return failure_of(members);
  }
  return guest_frame{std::move(started)};
}

parsed_frame parse_output(const json_outline& frame, stream_id stream, const limits& bounds) {
  if (frame.text.size() > bounds.output_frame) {
    return oversized("an output frame", frame.text.size(), bounds.output_frame);
  }
  json_members members{frame, "an output frame", errc::malformed};
  auto data = members.optional_text("data", bounds.output_frame);
  const auto encoded = members.optional_text("b64", bounds.output_frame);
  if (members.sound() && data.has_value() == encoded.has_value()) {
    return fail(errc::malformed, "an output frame must have exactly one of \"data\" and \"b64\"");
  }
  if (encoded) {
    data = decode_base64(*encoded);
    if (!data) {
      members.reject(errc::malformed, "b64", "is no base64 with padding (RFC 4648, section 4)");
    }
  }
  if (!members.sound()) {
    return failure_of(members);
  }
  return guest_frame{guest_output{stream, std::move(*data)}};
}

guest_exception parse_exception(const json_outline& object, json_members& done,
                                std::size_t max_bytes) {
  json_members members{object, "the error of a done frame", errc::malformed};
  guest_exception exception;
  exception.type = members.text("type", max_bytes);
  exception.message = members.optional_text("message", max_bytes).value_or("");
  exception.traceback = members.optional_text("traceback", max_bytes).value_or("");
  if (!members.sound()) {
    done.reject(members.reason().code, "error", members.reason().message);
  }
  return exception;
}

void parse_result(const json_outline& object, json_members& done, std::size_t max_bytes,
                  guest_done& into) {
  json_members members{object, "the result of a done frame", errc::malformed};
  into.result_repr = members.optional_text("repr", max_bytes);
  if (!into.result_repr) {
    members.reject(errc::malformed, "repr", "must be a string");
  }
  // Not `members.json`: a value that is null is a value.
  if (const auto value = object.find("value"); !value.empty()) {
    into.result_json = std::string{value};
  }
  if (!members.sound()) {
    done.reject(members.reason().code, "result", members.reason().message);
  }
}

std::size_t content_size(const guest_done& done) {
  std::size_t size = done.result_repr ? done.result_repr->size() : 0;
  size += done.result_json ? done.result_json->size() : 0;
  if (done.exception) {
    size += done.exception->type.size() + done.exception->message.size() +
            done.exception->traceback.size();
  }
  return size;
}

parsed_frame parse_done(const json_outline& frame, const limits& bounds) {
  if (frame.text.size() > bounds.output_frame) {
    return oversized("a done frame", frame.text.size(), bounds.output_frame);
  }
  json_members members{frame, "a done frame", errc::malformed};
  guest_done done;
  done.id = members.text("id", wire_name_limit);
  done.exit_code = members.clamped("exitCode", 0, 255);
  if (const auto result = members.optional_object("result"); !result.empty()) {
    const auto object = scan_json(result, scan_limits_of(bounds));
    parse_result(object.value(), members, bounds.control_frame, done);
  }
  if (const auto exception = members.optional_object("error"); !exception.empty()) {
    const auto object = scan_json(exception, scan_limits_of(bounds));
    done.exception = parse_exception(object.value(), members, bounds.control_frame);
  }
  if (!members.sound()) {
    return failure_of(members);
  }
  if (const auto size = content_size(done); size > bounds.control_frame) {
    return oversized("a done frame's result and error", size, bounds.control_frame);
  }
  return guest_frame{std::move(done)};
}

parsed_frame parse_artifact(const json_outline& frame) {
  json_members members{frame, "an artifact frame", errc::malformed};
  guest_artifact artifact;
  artifact.name = members.text("name", artifact_name_limit);
  artifact.mime_type = members.text("mimeType", mime_type_limit);
  if (!is_artifact_name(artifact.name)) {
    members.reject(errc::malformed, "name",
                   "must be a file name: no \"/\", no control characters, not \".\" or \"..\"");
  }
  if (!is_mime_type(artifact.mime_type)) {
    members.reject(errc::malformed, "mimeType", "must be a media type such as image/png");
  }
  // Megabytes: taken from where they stand, not from a copy. Base64 has nothing to escape.
  const auto token = members.json("b64");
  auto bytes = is_json_string(token) ? decode_base64(token.substr(1, token.size() - 2))
                                     : std::optional<std::string>{};
  if (!bytes) {
    members.reject(errc::malformed, "b64", "is no base64 with padding (RFC 4648, section 4)");
  }
  if (!members.sound()) {
    return failure_of(members);
  }
  artifact.bytes = std::move(*bytes);
  return guest_frame{std::move(artifact)};
}

constexpr std::array<std::pair<std::string_view, guest_call_kind>, 5> call_kinds = {{
    {"list_servers", guest_call_kind::list_servers},
    {"list_tools", guest_call_kind::list_tools},
    {"call_tool", guest_call_kind::call_tool},
    {"query_tool_docs", guest_call_kind::query_tool_docs},
    {"search_tool_docs", guest_call_kind::search_tool_docs},
}};

void read_kind(json_members& members, guest_call& call) {
  const auto type = members.text("type", wire_name_limit);
  const auto* const known = std::find_if(call_kinds.begin(), call_kinds.end(),
                                         [&](const auto& entry) { return entry.first == type; });
  if (known == call_kinds.end()) {
    members.reject(errc::invalid_argument, "type",
                   "must be list_servers, list_tools, call_tool, query_tool_docs or "
                   "search_tool_docs");
    return;
  }
  call.kind = known->second;
}

bool read_detail(json_members& members) {
  const auto detail = members.optional_text("detail", wire_name_limit).value_or("summary");
  if (detail != "summary" && detail != "full") {
    members.reject(errc::invalid_argument, "detail", "must be \"summary\" or \"full\"");
  }
  return detail == "full";
}

/// Stubs are of a whole server.
void read_document_detail(json_members& members, guest_call& call) {
  call.stubs = members.optional_text("detail", wire_name_limit) == "stubs";
  if (!call.stubs) {
    call.full_detail = read_detail(members);
  } else if (!call.tool.empty()) {
    members.reject(errc::invalid_argument, "tool", "can't be given with \"stubs\"");
  }
}

void read_arguments(json_members& members, const limits& bounds, guest_call& call) {
  const auto arguments = members.optional_object("arguments");
  if (arguments.size() > bounds.tool_payload) {
    members.reject(errc::too_large, "arguments",
                   fmt::format("of {} bytes are over the limit of {} bytes; pass less data at once",
                               arguments.size(), bounds.tool_payload));
  } else if (!arguments.empty()) {
    call.arguments = arguments;
  }
}

void read_content(json_members& members, const limits& bounds, guest_call& call) {
  switch (call.kind) {
  case guest_call_kind::list_servers:
    break;
  case guest_call_kind::list_tools:
    call.server = members.text("server", wire_name_limit);
    break;
  case guest_call_kind::call_tool:
    call.server = members.text("server", wire_name_limit);
    call.tool = members.text("tool", wire_name_limit);
    read_arguments(members, bounds, call);
    break;
  case guest_call_kind::query_tool_docs:
    call.server = members.text("server", wire_name_limit);
    call.tool = members.optional_text("tool", wire_name_limit).value_or("");
    read_document_detail(members, call);
    break;
  case guest_call_kind::search_tool_docs:
    call.query = members.text("query", wire_query_limit);
    call.server = members.optional_text("server", wire_name_limit).value_or("");
    call.limit = static_cast<std::uint32_t>(
        members.optional_number("limit", 1, wire_search_limit).value_or(call.limit));
    call.full_detail = read_detail(members);
    break;
  }
}

/// The call in `payload`; errors: invalid_argument, too_large.
expected<guest_call> parse_payload(std::uint64_t id, std::string_view payload,
                                   const json_outline& frame, const limits& bounds) {
  const auto object = scan_json(payload, scan_limits_of(bounds));
  if (!object || !object->is_object) {
    return fail(errc::invalid_argument, "a call's \"payload\" must be an object");
  }
  json_members members{*object, "a call", errc::invalid_argument};
  guest_call call;
  call.id = id;
  read_kind(members, call);
  if (members.sound()) {
    read_content(members, bounds, call);
  }
  if (!members.sound()) {
    return failure_of(members);
  }
  const auto arguments = call.kind == guest_call_kind::call_tool ? call.arguments.size() : 0;
  if (frame.text.size() > bounds.control_frame + arguments) {
    return oversized("a call without its arguments", frame.text.size() - arguments,
                     bounds.control_frame);
  }
  return call;
}

parsed_frame parse_call(const json_outline& frame, const limits& bounds) {
  json_members members{frame, "an rpc_request", errc::malformed};
  const auto id = members.number("id", 1, wire_id_limit);
  if (!members.sound()) {
    return failure_of(members);
  }
  auto call = parse_payload(id, members.json("payload"), frame, bounds);
  if (!call) {
    return refused_call{id, std::move(call.error())};
  }
  return guest_frame{std::move(*call)};
}

parsed_frame parse_cancel(const json_outline& frame, const limits& bounds) {
  if (frame.text.size() > bounds.control_frame) {
    return oversized("an rpc_cancel", frame.text.size(), bounds.control_frame);
  }
  json_members members{frame, "an rpc_cancel", errc::malformed};
  guest_cancel cancel{members.number("id", 1, wire_id_limit)};
  if (!members.sound()) {
    return failure_of(members);
  }
  return guest_frame{cancel};
}

/// The id of an rpc_request that is no valid frame as a whole, if all before its payload is sound:
/// what precedes the payload is then, with a brace added, an object of its own.
std::optional<std::uint64_t> id_before_payload(std::string_view line, const limits& bounds) {
  constexpr std::size_t envelope = 512;
  auto head = line.substr(0, envelope);
  const auto payload = head.find("\"payload\"");
  if (payload == std::string_view::npos) {
    return std::nullopt;
  }
  head = head.substr(0, payload);
  const auto comma = head.find_last_not_of(" \t");
  if (comma == std::string_view::npos || head[comma] != ',') {
    return std::nullopt;
  }
  const auto text = std::string{head.substr(0, comma)} + "}";
  const auto object = scan_json(text, scan_limits_of(bounds));
  if (!object || !object->is_object) {
    return std::nullopt;
  }
  json_members members{*object, "an rpc_request", errc::malformed};
  const auto type = members.text("type", wire_name_limit);
  const auto id = members.number("id", 1, wire_id_limit);
  return members.sound() && type == "rpc_request" ? std::optional{id} : std::nullopt;
}

parsed_frame refuse_broken(std::string_view line, error reason, const limits& bounds) {
  const auto id = id_before_payload(line, bounds);
  if (!id) {
    return tl::unexpected<error>(std::move(reason));
  }
  if (reason.code == errc::malformed) {
    reason.code = errc::invalid_argument;
  }
  return refused_call{*id, std::move(reason)};
}

} // namespace

parsed_frame parse_guest_frame(std::string_view line, const limits& bounds) {
  auto frame = scan_json(line, scan_limits_of(bounds));
  if (!frame) {
    return refuse_broken(line, std::move(frame.error()), bounds);
  }
  if (!frame->is_object) {
    return fail(errc::malformed, "a frame must be a JSON object");
  }
  json_members members{*frame, "a frame", errc::malformed};
  const auto type = members.text("type", wire_name_limit);
  if (!members.sound()) {
    return failure_of(members);
  }
  if (type == "stdout" || type == "stderr") {
    return parse_output(*frame, type == "stdout" ? stream_id::out : stream_id::err, bounds);
  }
  if (type == "rpc_request") {
    return parse_call(*frame, bounds);
  }
  if (type == "rpc_cancel") {
    return parse_cancel(*frame, bounds);
  }
  if (type == "artifact") {
    return parse_artifact(*frame);
  }
  if (type == "done") {
    return parse_done(*frame, bounds);
  }
  if (type == "ready") {
    return parse_ready(*frame, bounds);
  }
  if (type == "started") {
    return parse_started(*frame, bounds);
  }
  return fail(errc::malformed,
              "a frame: \"type\" must be ready, started, stdout, stderr, rpc_request, rpc_cancel, "
              "artifact or done");
}

} // namespace bulkhead
