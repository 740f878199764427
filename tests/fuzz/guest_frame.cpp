#include <nlohmann/json.hpp>

#include "protocol/artifact.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/wire.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

using json = nlohmann::json;

/// Limits that inputs of a few hundred bytes reach.
limits tight_limits() {
  limits bounds;
  bounds.json_depth = 6;
  bounds.json_nodes = 40;
  bounds.control_frame = 160;
  bounds.output_frame = 200;
  bounds.tool_payload = 64;
  bounds.line = 400;
  return bounds;
}

/// Frames as a guest writes them.
struct frame_writer {
  std::string operator()(const guest_ready& frame) const {
    return json{{"type", "ready"}, {"python", frame.python}, {"protocol", frame.protocol}}.dump();
  }
  std::string operator()(const guest_started& frame) const {
    return json{{"type", "started"}, {"id", frame.id}}.dump();
  }
  std::string operator()(const guest_output& frame) const {
    return json{{"type", frame.stream == stream_id::out ? "stdout" : "stderr"},
                {"b64", encode_base64(frame.bytes)}}
        .dump();
  }
  std::string operator()(const guest_cancel& frame) const {
    return json{{"type", "rpc_cancel"}, {"id", frame.id}}.dump();
  }
  std::string operator()(const guest_artifact& frame) const {
    return json{{"type", "artifact"},
                {"name", frame.name},
                {"mimeType", frame.mime_type},
                {"b64", encode_base64(frame.bytes)}}
        .dump();
  }
  std::string operator()(const guest_call& frame) const {
    json payload;
    auto add = [&](const char* key, const std::string& text) {
      if (!text.empty()) {
        payload[key] = text;
      }
    };
    add("server", frame.server);
    add("tool", frame.tool);
    add("query", frame.query);
    payload["limit"] = frame.limit;
    payload["detail"] = frame.stubs ? "stubs" : frame.full_detail ? "full" : "summary";
    payload["type"] = kind_name(frame.kind);
    auto text = payload.dump();
    text.pop_back();
    return R"({"type":"rpc_request","id":)" + std::to_string(frame.id) + R"(,"payload":)" + text +
           R"(,"arguments":)" + frame.arguments + "}}";
  }
  std::string operator()(const guest_done& frame) const {
    auto text = R"({"type":"done","exitCode":)" + std::to_string(frame.exit_code) + R"(,"id":)" +
                json(frame.id).dump();
    if (frame.result_repr) {
      text += R"(,"result":{"repr":)" + json(*frame.result_repr).dump() +
              (frame.result_json ? R"(,"value":)" + *frame.result_json : "") + "}";
    }
    if (frame.exception) {
      text += R"(,"error":)" + json{{"type", frame.exception->type},
                                    {"message", frame.exception->message},
                                    {"traceback", frame.exception->traceback}}
                                   .dump();
    }
    return text + "}";
  }

  static const char* kind_name(guest_call_kind kind) {
    switch (kind) {
    case guest_call_kind::list_servers:
      return "list_servers";
    case guest_call_kind::list_tools:
      return "list_tools";
    case guest_call_kind::call_tool:
      return "call_tool";
    case guest_call_kind::query_tool_docs:
      return "query_tool_docs";
    case guest_call_kind::search_tool_docs:
      return "search_tool_docs";
    }
    throw broken_promise{"a call is of a known kind"};
  }
};

/// What each kind of frame promises to whoever takes it.
struct frame_checker {
  const limits& bounds;

  void operator()(const guest_ready& frame) const { require_name(frame.python); }
  void operator()(const guest_started& frame) const { require_name(frame.id); }
  void operator()(const guest_output& frame) const {
    require(frame.bytes.size() <= bounds.output_frame, "an output frame is bounded");
  }
  void operator()(const guest_cancel& frame) const { require_id(frame.id); }
  void operator()(const guest_artifact& frame) const {
    require(is_artifact_name(frame.name), "an artifact's name is a file's name");
    require(is_mime_type(frame.mime_type), "an artifact's type is a media type");
  }
  void operator()(const guest_call& frame) const {
    require_id(frame.id);
    require(frame.server.size() <= wire_name_limit && frame.tool.size() <= wire_name_limit &&
                frame.query.size() <= wire_query_limit,
            "the names of a call are bounded");
    require(frame.limit >= 1 && frame.limit <= wire_search_limit, "a search is bounded");
    require(frame.arguments.size() <= bounds.tool_payload, "arguments are bounded");
    auto arguments = scan_json(frame.arguments, {bounds.line, bounds.json_depth});
    require(arguments && arguments->is_object, "arguments are a JSON object");
  }
  void operator()(const guest_done& frame) const {
    require_name(frame.id);
    require(frame.exit_code >= 0 && frame.exit_code <= 255, "an exit code is one of a process");
    require(!frame.result_json || scan_json(*frame.result_json, {bounds.line, bounds.json_depth}),
            "a result is JSON");
  }

  static void require_name(const std::string& name) {
    require(!name.empty() && name.size() <= wire_name_limit && is_utf8(name), "a name is bounded");
  }
  static void require_id(std::uint64_t id) {
    require(id >= 1 && id <= wire_id_limit, "an id is one that every JSON reader holds exactly");
  }
};

void check_refusal(const refused_call& refused) {
  frame_checker::require_id(refused.id);
  require(refused.reason.code == errc::invalid_argument || refused.reason.code == errc::too_large,
          "a call is refused for what it is");
  require_message(refused.reason.message);
  auto line = encode_refusal(refused.id, refused.reason);
  require(line.find('\n') == line.size() - 1, "a refusal is one line");
  require(scan_json(line, {line.size()}).has_value(), "a refusal is JSON");
}

void check(std::string_view line, const limits& bounds) {
  auto read = parse_guest_frame(line, bounds);
  if (!read) {
    require(read.error().code == errc::malformed || read.error().code == errc::too_large,
            "a frame is refused for what it is");
    require_message(read.error().message);
    return;
  }
  if (const auto* refused = std::get_if<refused_call>(&*read)) {
    check_refusal(*refused);
    return;
  }
  const auto& frame = std::get<guest_frame>(*read);
  std::visit(frame_checker{bounds}, frame);
  auto again = parse_guest_frame(std::visit(frame_writer{}, frame), limits{});
  require(again && *again == *read, "a frame that is written anew says the same");
}

} // namespace

void guest_frame_target(std::string_view input) {
  check(input, limits{});
  check(input, tight_limits());
}

} // namespace bulkhead::fuzz
