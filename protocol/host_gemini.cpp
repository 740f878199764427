#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/host_entry.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// `url` is of a server with server-sent events unless `type` says otherwise; `httpUrl` never is.
void read_gemini_transport(host_entry& entry) {
  const auto& type = entry.take("type");
  if (entry.has("httpUrl")) {
    entry.ignore({"url", "command", "args", "env", "cwd"});
    entry.copy_address("httpUrl", "http");
  } else if (entry.has("url")) {
    entry.ignore({"command", "args", "env", "cwd"});
    entry.copy_address("url", type == "http" ? "http" : "sse");
  } else if (entry.has("tcp")) {
    entry.ignore({"tcp"});
    entry.refuse("speaks over a web socket (tcp), which isn't supported");
  } else {
    entry.copy_process();
    entry.copy("cwd");
  }
  entry.copy("headers");
}

/// Names may carry a condition on arguments, `name(…)`, in the list of the included.
void read_included(host_entry& entry) {
  const auto& value = entry.take("includeTools");
  if (value.is_null()) {
    return;
  }
  if (!value.is_array()) {
    entry.refuse("includeTools must be an array of tools' names");
    return;
  }
  auto names = json::array();
  for (const auto& each : value) {
    auto name = each.is_string() ? each.get<std::string>() : std::string{};
    name = name.substr(0, name.find('('));
    if (name.empty() || name.find_first_of("*?") != std::string::npos) {
      entry.refuse("includeTools has something that is no tool's name");
      return;
    }
    names.push_back(name);
  }
  entry.set("includeTools", std::move(names));
}

void read_gemini_entry(host_entry& entry) {
  entry.ignore({"trust", "extension", "extensionName", "targetAudience", "targetServiceAccount"});
  read_gemini_transport(entry);
  entry.copy("description");
  entry.copy_timeout("timeout", "callTimeout", 1ms);
  read_included(entry);
  entry.copy_excluded("excludeTools");
  entry.remark_oauth("oauth");
  const auto& provider = entry.take("authProviderType");
  if (!provider.is_null() && provider != "dynamic_discovery") {
    entry.refuse("signs in with Google's credentials (authProviderType), which isn't supported");
  }
}

/// The names that the file alone allows or excludes, today's place or yesterday's.
void read_gemini_lists(host_reading& reading, const json& document) {
  const auto& settings = member_of(document, "mcp");
  for (const auto* names :
       {&member_of(settings, "excluded"), &member_of(document, "excludeMCPServers")}) {
    for (const auto& name : texts_of(*names)) {
      reading.switched_off.insert(name);
    }
  }
  for (const auto* names :
       {&member_of(settings, "allowed"), &member_of(document, "allowMCPServers")}) {
    if (!names->is_array()) {
      continue;
    }
    auto only = texts_of(*names);
    reading.switched_on.emplace(only.begin(), only.end());
  }
  const auto& excluded = member_of(member_of(document, "tools"), "exclude");
  if (excluded.is_array() && !excluded.empty()) {
    reading.report({},
                   "tools.exclude isn't taken over; if it names tools of MCP servers, write "
                   "\"policy\": {\"deny\": [\"SERVER/TOOL\"]} into a file of your own",
                   problem_kind::remark);
  }
}

} // namespace

void read_gemini(host_reading& reading, const json& document) {
  read_gemini_lists(reading, document);
  reading.read_servers("mcpServers", member_of(document, "mcpServers"), variable_syntax::gemini,
                       read_gemini_entry);
}

void read_gemini_switches(host_reading& reading, const json& document) {
  for (const auto& [name, value] : document.items()) {
    if (member_of(value, "enabled") == json(false)) {
      reading.switched_off.insert(name);
    }
  }
}

} // namespace bulkhead
