#include "protocol/client_questions.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/mcp_server.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

tl::unexpected<error> unsound(std::string_view method, std::string_view expected) {
  return fail(errc::malformed,
              fmt::format("{}: the client's answer must have {}", method, expected));
}

tl::unexpected<rpc_refusal> refuse(std::string message) {
  return tl::unexpected<rpc_refusal>({rpc_code::invalid_params, std::move(message), {}});
}

void add_member(std::string& members, std::string_view key, std::string_view value) {
  members += members.empty() ? "" : ",";
  append_json_string(members, key);
  members += ':';
  members += value;
}

} // namespace

expected<std::string> question_params(std::string_view method, std::string_view params,
                                      std::string_view server) {
  if (!params.empty() && !is_json_object(params)) {
    return fail(errc::invalid_argument, fmt::format("{}: params must be an object", method));
  }
  bool for_person = method == "elicitation/create";
  auto outline = outline_of_part(params);
  std::string members;
  for (const auto& member : outline.members) {
    if (member.key == "_meta" || member.key == "task") {
      continue;
    }
    if (for_person && member.key == "message" && !server.empty()) {
      auto text = fmt::format("MCP server \"{}\" asks: {}", printable(server),
                              decode_json_string(member.value));
      add_member(members, member.key, json_quote(text));
    } else {
      add_member(members, member.key, member.value);
    }
  }
  if (for_person && !is_json_string(outline.find("message"))) {
    return fail(errc::invalid_argument, fmt::format("{}: message must be a string", method));
  }
  return "{" + members + "}";
}

expected<void> check_client_result(std::string_view method, std::string_view result) {
  if (!is_json_object(result)) {
    return fail(errc::malformed, fmt::format("{}: the client's answer is no object", method));
  }
  auto outline = outline_of_part(result);
  if (method == "elicitation/create") {
    static constexpr std::array<std::string_view, 3> actions = {"accept", "decline", "cancel"};
    auto action = decode_json_string(outline.find("action"));
    if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
      return unsound(method, "an action: accept, decline or cancel");
    }
    if (auto content = outline.find("content");
        !content.empty() && content != "null" && !is_json_object(content)) {
      return unsound(method, "an object as content");
    }
  } else if (method == "sampling/createMessage") {
    auto content = outline.find("content");
    if (!is_json_string(outline.find("role")) || !is_json_string(outline.find("model")) ||
        (!is_json_object(content) && !is_json_array(content))) {
      return unsound(method, "role, content and model");
    }
  } else if (method == "roots/list" && !is_json_array(outline.find("roots"))) {
    return unsound(method, "an array of roots");
  }
  return {};
}

error question_refused(std::string_view method, std::string_view error) {
  auto reason = upstream::read_failure(error);
  auto code = reason.code == rpc_code::method_not_found ? errc::unavailable : errc::denied;
  return {code,
          fmt::format("{}: the client refused it: {} ({})", method, reason.message, reason.code)};
}

std::string input_required_result(const std::vector<input_request>& questions,
                                  std::string_view state) {
  std::string requests;
  for (const auto& each : questions) {
    add_member(requests, each.key,
               fmt::format(R"({{"method":{},"params":{}}})", json_quote(each.method),
                           each.params.empty() ? "{}" : each.params));
  }
  return result_that_asks(
      fmt::format(R"("inputRequests":{{{}}},"requestState":{})", requests, json_quote(state)));
}

tl::expected<input_responses, rpc_refusal> read_input_responses(const mcp_request& request) {
  input_responses result;
  if (auto state = request.find("requestState"); !state.empty()) {
    result.state = decode_json_string(state);
    if (result.state.empty()) {
      return refuse("requestState must be a string: the one that an answer gave, unchanged");
    }
  }
  auto answers = request.find("inputResponses");
  if (answers.empty()) {
    return result;
  }
  if (!is_json_object(answers)) {
    return refuse("inputResponses must be an object, with an answer for each key of inputRequests");
  }
  for (const auto& member : outline_of_part(answers).members) {
    if (!is_json_object(member.value)) {
      return refuse(fmt::format("inputResponses: the answer for {} must be an object",
                                json_quote(std::string_view{member.key}.substr(0, 100))));
    }
    result.answers.emplace(member.key, member.value);
  }
  return result;
}

std::size_t call_digest(std::string_view tool, std::string_view arguments) {
  auto parsed = nlohmann::json::parse(arguments.empty() ? "{}" : arguments, nullptr, false);
  // It has a number that no double holds, perhaps; then only the same spelling is the same call.
  auto text = parsed.is_discarded()
                  ? std::string{arguments}
                  : parsed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return std::hash<std::string>{}(std::string{tool} + '\n' + text);
}

} // namespace bulkhead
