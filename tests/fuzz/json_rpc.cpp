#include "protocol/json_rpc.hpp"

#include "protocol/http_mcp.hpp"
#include "protocol/mcp_request.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

constexpr scan_limits bounds{65536, 16, 1000};
/// What we write has a few bytes more than what it was made of.
constexpr scan_limits wider{4 * 65536, 24, 2000};

std::string one_line(std::string_view json) {
  std::string result;
  append_json_line(result, json);
  return result;
}

rpc_message reread(const std::string& line) {
  require(line.find('\n') == line.size() - 1, "a message of ours is one line");
  auto message = parse_rpc(line, wider);
  require(message.has_value(), "a message of ours is one of JSON-RPC");
  return std::move(*message);
}

void check_call(const rpc_message& message) {
  const bool request = message.kind == rpc_kind::request;
  require(request != message.id.empty(), "requests alone have an id");
  // The views of what is read anew point into this.
  const auto line = request ? encode_request(message.id, message.method, message.params)
                            : encode_notification(message.method, message.params);
  auto again = reread(line);
  require(again.kind == message.kind && again.id == message.id && again.method == message.method &&
              again.params == one_line(message.params),
          "a call that is written anew says the same");
}

void check_response(const rpc_message& message) {
  require(message.result.empty() != message.error.empty(), "a response has a result or an error");
  if (message.error.empty()) {
    const auto line = encode_result(message.id, message.result);
    auto again = reread(line);
    require(again.id == message.id && again.result == one_line(message.result),
            "a result that is written anew says the same");
    return;
  }
  const auto line = encode_error(message.id, rpc_code::internal_error, "why", message.error);
  auto again = reread(line);
  require(again.id == message.id && !again.error.empty(), "an error of ours is one");
}

void check_refusal(const rpc_refusal& refused, std::string_view id) {
  require_message(refused.message);
  require(refused.code < 0, "a refusal has a code");
  const auto line = encode_error(id, refused.code, refused.message, refused.data);
  require(reread(line).kind == rpc_kind::response, "a refusal is a response");
}

void check_mcp(const rpc_message& message) {
  auto request = read_mcp_request(message, bounds);
  if (!request) {
    check_refusal(request.error(), message.id);
    return;
  }
  const auto& token = request->progress_token;
  require(token.empty() || is_json_string(token) || is_json_integer(token),
          "a progress token is a string or an integer");
  require(token.size() <= rpc_id_limit, "a progress token is bounded");
  require(request->abilities.empty() || (request->modern && is_json_object(request->abilities)),
          "capabilities are an object, of the modern era");
  require(!request->log_level || request->modern, "a request's log level is of the modern era");
  for (auto name : {"name", "uri", "arguments"}) {
    auto text = request->text(name);
    require(!text || (is_utf8(*text) && is_json_string(request->find(name))),
            "an argument's text is a string");
  }
}

/// Messages travel under ids of ours, and back.
void check_ids(std::string_view text, const rpc_message& message) {
  if (message.kind != rpc_kind::request) {
    return;
  }
  const auto ours = with_request_id(text, "\"r-1\"");
  auto read = parse_rpc(ours, wider);
  require(read && read->id == "\"r-1\"" && read->method == message.method &&
              read->params == message.params,
          "another id changes nothing else");
  const auto back = readdressed(ours, "\"r-1\"", message.id);
  auto theirs = parse_rpc(back, wider);
  require(theirs && theirs->id == message.id, "the client's id comes back");
}

} // namespace

void json_rpc_target(std::string_view input) {
  auto message = parse_rpc(input, bounds);
  if (!message) {
    std::string id;
    auto reason = explain_unreadable(input, message.error(), bounds, id);
    require(reason.code == rpc_code::parse_error || reason.code == rpc_code::invalid_request,
            "what can't be read has a code of JSON-RPC's");
    check_refusal(reason, id);
    return;
  }
  if (message->kind == rpc_kind::response) {
    check_response(*message);
  } else {
    check_call(*message);
    check_mcp(*message);
  }
  require(is_response(input) == (message->kind == rpc_kind::response),
          "responses are told alike everywhere");
  check_ids(input, *message);
}

} // namespace bulkhead::fuzz
