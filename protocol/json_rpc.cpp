#include "protocol/json_rpc.hpp"

#include <fmt/format.h>

namespace bulkhead {

namespace {

tl::unexpected<error> not_rpc(std::string_view why) {
  return fail(errc::malformed, fmt::format("no JSON-RPC 2.0 message: {}", why));
}

/// The id in one spelling; errors: malformed, too_large.
expected<std::string> read_id(std::string_view token) {
  if (token.size() > rpc_id_limit) {
    return fail(errc::too_large,
                fmt::format("a JSON-RPC id of {} bytes is over the limit of {} bytes", token.size(),
                            rpc_id_limit));
  }
  if (is_json_integer(token)) {
    return std::string{token};
  }
  if (is_json_string(token)) {
    return json_quote(decode_json_string(token));
  }
  return not_rpc("\"id\" must be a string or an integer");
}

expected<rpc_message> read_call(const json_outline& outline) {
  const auto method = outline.find("method");
  if (!is_json_string(method)) {
    return not_rpc("\"method\" must be a string");
  }
  if (!outline.find("result").empty() || !outline.find("error").empty()) {
    return not_rpc("a message with \"method\" has neither \"result\" nor \"error\"");
  }
  rpc_message message;
  message.method = decode_json_string(method);
  message.params = outline.find("params");
  if (!message.params.empty() && !is_json_object(message.params) &&
      !is_json_array(message.params)) {
    return not_rpc("\"params\" must be an object or an array");
  }
  if (const auto id = outline.find("id"); !id.empty()) {
    auto spelled = read_id(id);
    if (!spelled) {
      return tl::unexpected<error>(std::move(spelled.error()));
    }
    message.kind = rpc_kind::request;
    message.id = std::move(*spelled);
  }
  return message;
}

expected<rpc_message> read_response(const json_outline& outline) {
  rpc_message message;
  message.kind = rpc_kind::response;
  message.result = outline.find("result");
  message.error = outline.find("error");
  if (message.result.empty() == message.error.empty()) {
    return not_rpc("expected \"method\", or exactly one of \"result\" and \"error\"");
  }
  if (!message.error.empty() && !is_json_object(message.error)) {
    return not_rpc("\"error\" must be an object");
  }
  const auto id = outline.find("id");
  if (!message.error.empty() && (id.empty() || id == "null")) {
    return message;
  }
  auto spelled = read_id(id);
  if (!spelled) {
    return tl::unexpected<error>(std::move(spelled.error()));
  }
  message.id = std::move(*spelled);
  return message;
}

/// The start of a message, up to its id.
std::string begin_message(std::string_view id, std::size_t more) {
  std::string result;
  result.reserve(64 + id.size() + more);
  result += R"({"jsonrpc":"2.0")";
  if (!id.empty()) {
    result += R"(,"id":)";
    result += id;
  }
  return result;
}

void append_call(std::string& out, std::string_view method, std::string_view params) {
  out += R"(,"method":)";
  append_json_string(out, method);
  if (!params.empty()) {
    out += R"(,"params":)";
    append_json_line(out, params);
  }
  out += "}\n";
}

} // namespace

expected<rpc_message> parse_rpc(std::string_view text, const scan_limits& bounds) {
  auto outline = scan_json(text, bounds);
  if (!outline) {
    return tl::unexpected<error>(std::move(outline.error()));
  }
  if (is_json_array(outline->text)) {
    return not_rpc("a batch (array), which MCP has not had since 2025-06-18; send one message at "
                   "a time");
  }
  if (!outline->is_object) {
    return not_rpc("a message must be a JSON object");
  }
  if (decode_json_string(outline->find("jsonrpc")) != "2.0") {
    return not_rpc("\"jsonrpc\" must be \"2.0\"");
  }
  return outline->find("method").empty() ? read_response(*outline) : read_call(*outline);
}

std::string encode_request(std::string_view id, std::string_view method, std::string_view params) {
  auto result = begin_message(id, method.size() + params.size());
  append_call(result, method, params);
  return result;
}

std::string encode_notification(std::string_view method, std::string_view params) {
  auto result = begin_message({}, method.size() + params.size());
  append_call(result, method, params);
  return result;
}

std::string encode_result(std::string_view id, std::string_view result) {
  auto message = begin_message(id, result.size());
  message += R"(,"result":)";
  append_json_line(message, result);
  return message + "}\n";
}

std::string encode_error(std::string_view id, int code, std::string_view message,
                         std::string_view data) {
  auto result = begin_message(id.empty() ? "null" : id, message.size() + data.size());
  result += fmt::format(R"(,"error":{{"code":{},"message":)", code);
  append_json_string(result, message);
  if (!data.empty()) {
    result += R"(,"data":)";
    append_json_line(result, data);
  }
  return result + "}}\n";
}

} // namespace bulkhead
