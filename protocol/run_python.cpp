#include "protocol/run_python.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/edit_distance.hpp"
#include "protocol/input_files.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

namespace {

// The only thing about Bulkhead that a model is sure to see.
constexpr std::string_view description =
    "Run Python (CPython 3) in a fresh, locked-down container without network. You get "
    "stdout, stderr and the last expression's value: print only what you need.\n\n"
    "The code can call the user's MCP servers. Name them in `servers`; each becomes a proxy "
    "`mcp_<alias>`:\n"
    "  r = await mcp_x.some_tool(arg=1)  # dict or text; raises MCPError\n"
    "Await every call (top-level await works, asyncio.gather overlaps calls). Loop, join and "
    "filter in code, in one run.\n\n"
    "To find out what exists, `from mcp import runtime` and print\n"
    "- runtime.discovered_servers(detailed=True): every server you may name\n"
    "- await runtime.search_tool_docs(\"words\"): tools of all of them\n"
    "- await runtime.query_tool_docs(\"x\"): signatures\n"
    "All helpers: resource bulkhead://capabilities or runtime.capability_summary().";

/// The servers one call may name; far above any sensible use.
constexpr std::size_t most_servers = 256;
/// Above any name or alias there can be.
constexpr std::size_t longest_name_asked = 256;
constexpr std::array<std::string_view, 6> known_arguments = {"code",    "servers", "files",
                                                             "timeout", "session", "reset"};
/// Names that an error text lists before it says how many more there are.
constexpr std::size_t names_listed = 20;

tl::unexpected<error> invalid(std::string message) {
  return fail(errc::invalid_argument, std::move(message));
}

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{}", static_cast<double>(time.count()) / 1000.0);
}

/// What kind of JSON value a scanned token is, as people say it.
std::string_view kind_of(std::string_view token) {
  switch (token.empty() ? '\0' : token.front()) {
  case '"':
    return "a string";
  case '{':
    return "an object";
  case '[':
    return "an array";
  case 't':
  case 'f':
    return "a boolean";
  case 'n':
    return "null";
  default:
    return "a number";
  }
}

/// The elements of a scanned JSON array, as texts; nothing when there are more than `most`.
std::optional<std::vector<std::string_view>> array_elements(std::string_view array,
                                                            std::size_t most) {
  std::vector<std::string_view> elements;
  std::size_t depth = 0;
  std::size_t start = 0;
  bool quoted = false;
  auto close_element = [&](std::size_t end) {
    auto element = array.substr(start, end - start);
    auto first = element.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos) {
      element = element.substr(first, element.find_last_not_of(" \t\r\n") - first + 1);
      elements.push_back(element);
    }
  };
  for (std::size_t at = 0; at < array.size() && elements.size() <= most; ++at) {
    char c = array[at];
    if (quoted) {
      at += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      start = depth++ == 0 ? at + 1 : start;
    } else if (c == ']' || c == '}') {
      if (--depth == 0) {
        close_element(at);
      }
    } else if (c == ',' && depth == 1) {
      close_element(at);
      start = at + 1;
    }
  }
  if (elements.size() > most) {
    return std::nullopt;
  }
  return elements;
}

expected<std::string> read_code(std::string_view token, const limits& bounds) {
  if (token.empty()) {
    return invalid("code is missing; pass the Python source to run as a string");
  }
  if (!is_json_string(token)) {
    return invalid(fmt::format("code must be a string of Python source, got {}", kind_of(token)));
  }
  auto code = decode_json_string(token);
  if (code.find_first_not_of(" \t\r\n\f\v") == std::string::npos) {
    return invalid("code is empty; pass the Python source to run");
  }
  if (code.size() > bounds.code) {
    return fail(errc::too_large,
                fmt::format("code has {} bytes, over the limit of {} bytes; pass data by way of an "
                            "MCP server rather than as literals",
                            code.size(), bounds.code));
  }
  return code;
}

expected<std::chrono::milliseconds> read_timeout(std::string_view token, const settings& config) {
  if (token.empty() || token == "null") {
    return config.timeout;
  }
  auto range = fmt::format("seconds, above 0 and at most {} (MCP_BRIDGE_MAX_TIMEOUT)",
                           seconds_text(config.max_timeout));
  if (kind_of(token) != "a number") {
    return invalid(fmt::format("timeout must be a number of {}, got {}", range, kind_of(token)));
  }
  double seconds = 0;
  auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), seconds);
  double most = static_cast<double>(config.max_timeout.count()) / 1000.0;
  if (failure != std::errc{} || end != token.data() + token.size() || !(seconds > 0) ||
      seconds > most) {
    return invalid(
        fmt::format("timeout must be a number of {}, got {}", range, token.substr(0, 40)));
  }
  // A timeout of less than a millisecond is rounded up rather than to none.
  auto time = std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000.0)};
  return std::max(time, std::chrono::milliseconds{1});
}

/// The names of the servers that a run may use.
std::vector<std::string_view> allowed_servers(const server_catalogue& catalogue) {
  std::vector<std::string_view> names;
  for (const auto& entry : catalogue.servers) {
    if (allows_server(catalogue.rules, entry.name).allowed) {
      names.push_back(entry.name);
    }
  }
  return names;
}

std::string list_names(std::vector<std::string_view> names, const server_catalogue& catalogue) {
  if (names.empty() && !catalogue.rules.closed.empty()) {
    return catalogue.rules.closed;
  }
  if (names.empty()) {
    return catalogue.servers.empty() ? "none are configured" : "policy allows none";
  }
  auto more = names.size() > names_listed ? names.size() - names_listed : 0;
  names.resize(names.size() - more);
  auto text = fmt::format("there are: {}", fmt::join(names, ", "));
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

tl::unexpected<error> unknown_server(std::string_view name, const server_catalogue& catalogue) {
  for (const auto& entry : catalogue.disabled) {
    if (entry.name == name) {
      return fail(errc::not_found,
                  fmt::format("MCP server \"{}\" is disabled in {}", name, entry.source));
    }
  }
  auto names = allowed_servers(catalogue);
  auto likely = closest_name(name, names);
  auto hint = likely.empty() ? std::string{} : fmt::format("did you mean \"{}\"? ", likely);
  return fail(errc::not_found, fmt::format("there is no MCP server \"{}\"; {}{}", shown_name(name),
                                           hint, list_names(std::move(names), catalogue)));
}

expected<std::string> read_server(std::string_view token, const server_catalogue& catalogue) {
  if (!is_json_string(token)) {
    return invalid(
        fmt::format("servers must be an array of server names, got {} in it", kind_of(token)));
  }
  auto found = find_server(decode_json_string(token), catalogue);
  if (!found) {
    return fail(found.error().code, "servers: " + found.error().message);
  }
  return found;
}

expected<std::vector<std::string>> read_servers(std::string_view token,
                                                const server_catalogue& catalogue) {
  std::vector<std::string> servers;
  if (token.empty() || token == "null") {
    return servers;
  }
  if (!is_json_array(token)) {
    return invalid(fmt::format(
        "servers must be an array of server names, e.g. [\"memory\"], got {}", kind_of(token)));
  }
  auto elements = array_elements(token, most_servers);
  if (!elements) {
    return invalid(fmt::format("servers names more than {} servers", most_servers));
  }
  for (auto element : *elements) {
    auto name = read_server(element, catalogue);
    if (!name) {
      return tl::unexpected<error>(std::move(name.error()));
    }
    servers.push_back(std::move(*name));
  }
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

/// The session that the call is for, into `call`.
std::optional<error> read_session(const json_outline& arguments, python_call& call) {
  auto invalid_here = [](std::string message) {
    return error{errc::invalid_argument, std::move(message)};
  };
  auto session = arguments.find("session");
  if (!session.empty() && session != "null") {
    if (!is_json_string(session)) {
      return invalid_here(fmt::format(
          "session must be \"new\" or the handle that an answer gave, got {}", kind_of(session)));
    }
    call.session = decode_json_string(session);
    if (call.session.empty()) {
      return invalid_here("session is empty; pass \"new\", a handle, or leave it out");
    }
  }
  auto reset = arguments.find("reset");
  if (reset.empty() || reset == "null" || reset == "false") {
    return std::nullopt;
  }
  if (reset != "true") {
    return invalid_here(fmt::format("reset must be true or false, got {}", kind_of(reset)));
  }
  if (call.session.empty()) {
    return invalid_here("reset needs a session: pass the handle of the one to begin afresh");
  }
  call.reset = true;
  return std::nullopt;
}

tl::unexpected<error> unknown_argument(std::string_view name) {
  name = name.substr(0, 100);
  auto likely = closest_name(name, {known_arguments.begin(), known_arguments.end()});
  auto hint = likely.empty() ? std::string{} : fmt::format(", did you mean \"{}\"?", likely);
  return invalid(fmt::format("there is no argument \"{}\"{} run_python takes {}", name,
                             hint.empty() ? ";" : hint, fmt::join(known_arguments, ", ")));
}

} // namespace

expected<std::string> find_server(std::string_view name, const server_catalogue& catalogue) {
  if (name.empty() || name.size() > longest_name_asked) {
    return invalid(
        fmt::format("a server name has 1 to {} bytes, got {}", longest_name_asked, name.size()));
  }
  const auto* entry = catalogue.find(name);
  if (entry == nullptr) {
    return unknown_server(name, catalogue);
  }
  if (auto verdict = allows_server(catalogue.rules, entry->name); !verdict.allowed) {
    return fail(errc::denied, fmt::format("\"{}\" is denied by the user's policy ({})", entry->name,
                                          verdict.rule));
  }
  return entry->name;
}

std::string run_python_definition(const settings& config) {
  return fmt::format(
      R"({{"name":"{}","title":"Run Python","description":{},"inputSchema":{{"type":"object",)"
      R"("properties":{{"code":{{"type":"string"}},)"
      R"("servers":{{"type":"array","items":{{"type":"string"}},)"
      R"("description":"MCP servers the code may call"}},)"
      R"("files":{{"type":"array","items":{{"type":"object"}},)"
      R"("description":"Put in /workspace first: {{path, text or b64}}"}},)"
      R"("timeout":{{"type":"number","exclusiveMinimum":0,"maximum":{},)"
      R"("description":"Seconds; default {}"}},)"
      R"("session":{{"type":"string","description":"\"new\" keeps the interpreter for calls )"
      R"(with the handle returned"}},"reset":{{"type":"boolean"}}}},)"
      R"("required":["code"],"additionalProperties":false}},)"
      R"({}"annotations":{{"title":"Run Python","readOnlyHint":false,"destructiveHint":true,)"
      R"("idempotentHint":false,"openWorldHint":true}},"_meta":{{"bulkhead/outputSchema":"{}"}}}})",
      run_python_name, json_quote(description), seconds_text(config.max_timeout),
      seconds_text(config.timeout),
      config.output_schema ? R"("outputSchema":)" + run_python_output_schema() + "," : "",
      output_schema_uri);
}

expected<python_call> read_python_call(std::string_view arguments,
                                       const server_catalogue& catalogue, const settings& config,
                                       const limits& bounds) {
  auto outline = scan_json(arguments.empty() ? "{}" : arguments,
                           {bounds.line, bounds.json_depth, bounds.json_nodes});
  if (!outline) {
    return tl::unexpected<error>(std::move(outline.error()));
  }
  for (const auto& member : outline->members) {
    if (std::find(known_arguments.begin(), known_arguments.end(), member.key) ==
        known_arguments.end()) {
      return unknown_argument(member.key);
    }
  }
  auto code = read_code(outline->find("code"), bounds);
  if (!code) {
    return tl::unexpected<error>(std::move(code.error()));
  }
  auto servers = read_servers(outline->find("servers"), catalogue);
  if (!servers) {
    return tl::unexpected<error>(std::move(servers.error()));
  }
  auto timeout = read_timeout(outline->find("timeout"), config);
  if (!timeout) {
    return tl::unexpected<error>(std::move(timeout.error()));
  }
  python_call call{std::move(*code), std::move(*servers), *timeout, {}, false, {}};
  if (auto failure = read_session(*outline, call)) {
    return tl::unexpected<error>(std::move(*failure));
  }
  auto files = read_input_files(outline->find("files"), bounds);
  if (!files) {
    return tl::unexpected<error>(std::move(files.error()));
  }
  call.files = std::move(*files);
  return call;
}

} // namespace bulkhead
