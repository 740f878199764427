#include "protocol/approval_question.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/content_digest.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t longest_arguments = 2'048;
constexpr std::size_t longest_name = 256;
// Of arguments that are too long to be shown whole.
constexpr std::size_t most_arguments = 40;
constexpr std::size_t longest_key = 64;
constexpr std::size_t longest_value = 160;
constexpr std::size_t most_depth = 64;

/// In one line, so that nothing in it looks like a line of ours.
std::string shown(std::string_view text, std::size_t most) {
  std::string line;
  append_json_line(line, text.substr(0, most + 1));
  return printable(shortened(std::move(line), most));
}

/// All arguments by name, so that none hides behind a long one; long values are cut.
std::string shown_by_name(std::string_view arguments) {
  auto outline = scan_json(arguments, {arguments.size(), most_depth, arguments.size()});
  if (!outline || outline->members.empty()) {
    return shown(arguments, longest_arguments);
  }
  std::string text;
  std::size_t count = 0;
  for (const auto& member : outline->members) {
    if (++count > most_arguments) {
      return text + fmt::format("and {} more that aren't shown: say no unless you expected so many",
                                outline->members.size() - most_arguments);
    }
    text +=
        fmt::format("{}: {}\n", shown(member.key, longest_key), shown(member.value, longest_value));
  }
  text.pop_back();
  return text;
}

} // namespace

std::string approval_question(std::string_view server, std::string_view tool,
                              std::string_view arguments, std::string_view rule, bool changed) {
  bool whole = arguments.size() <= longest_arguments;
  auto text = fmt::format("Code in the sandbox wants to call the tool \"{}\" of your MCP server "
                          "\"{}\" with these arguments:\n{}\n",
                          shown(tool, longest_name), shown(server, longest_name),
                          whole ? shown(arguments, longest_arguments) : shown_by_name(arguments));
  if (!whole) {
    text += fmt::format("(Long ones are cut; all are {} bytes, and their SHA-256 is {}.)\n",
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
