#include "protocol/approval_question.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/content_digest.hpp"
#include "protocol/json_text.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t longest_arguments = 2'048;
constexpr std::size_t longest_name = 256;

/// In one line, so that nothing in it looks like a line of ours.
std::string shown(std::string_view text, std::size_t most) {
  std::string line;
  append_json_line(line, text.substr(0, most + 1));
  return printable(shortened(std::move(line), most));
}

} // namespace

std::string approval_question(std::string_view server, std::string_view tool,
                              std::string_view arguments, std::string_view rule, bool changed) {
  auto text = fmt::format("Code in the sandbox wants to call the tool \"{}\" of your MCP server "
                          "\"{}\" with these arguments:\n{}\n",
                          shown(tool, longest_name), shown(server, longest_name),
                          shown(arguments, longest_arguments));
  if (arguments.size() > longest_arguments) {
    text += fmt::format("(Only the beginning of {} bytes is shown; their SHA-256 is {}.)\n",
                        arguments.size(), content_digest(arguments));
  }
  if (changed) {
    text += "It was approved once, but its definition has changed since.\n";
  }
  text += fmt::format("Your policy asks for a yes first: {}", printable(rule));
  json answer{{"type", "string"},
              {"title", "Allow the call?"},
              {"description", "once: this call; always: all calls of this tool until its "
                              "definition changes; no: neither this call nor others in this run"},
              {"enum", {"once", "always", "no"}}};
  json params{{"message", text},
              {"requestedSchema",
               {{"type", "object"},
                {"properties", {{"answer", std::move(answer)}}},
                {"required", {"answer"}}}}};
  return params.dump(-1, ' ', false, json::error_handler_t::replace);
}

approval_decision read_decision(std::string_view result) {
  auto document = json::parse(result, nullptr, false);
  if (!document.is_object() || document.value("action", json{}) != json("accept")) {
    return approval_decision::no;
  }
  auto content = document.value("content", json{});
  auto answer = content.is_object() ? content.value("answer", json{}) : json{};
  return answer == json("once")     ? approval_decision::once
         : answer == json("always") ? approval_decision::always
                                    : approval_decision::no;
}

} // namespace bulkhead
