#include "protocol/host_config.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/config_keys.hpp"
#include "protocol/config_text.hpp"
#include "protocol/host_entry.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

/// Values in it: histories take many more than a configuration needs.
constexpr std::size_t most_nodes = 4'000'000;

using reader = void (*)(host_reading&, const json&);

struct host_row {
  mcp_host host;
  std::string_view name;
  std::string_view shown;
  expected<json> (*parse)(std::string_view, const config_text_limits&);
  reader read;
  reader read_switches;
};

constexpr std::array rows = {
    host_row{mcp_host::claude_code, "claude-code", "Claude Code", read_config_json,
             read_claude_code, read_claude_switches},
    host_row{mcp_host::claude_desktop, "claude-desktop", "Claude Desktop", read_config_json,
             read_claude_desktop, nullptr},
    host_row{mcp_host::cursor, "cursor", "Cursor", read_config_json, read_cursor, nullptr},
    host_row{mcp_host::vscode, "vscode", "VS Code", read_config_json, read_vscode, nullptr},
    host_row{mcp_host::windsurf, "windsurf", "Windsurf", read_config_json, read_windsurf, nullptr},
    host_row{mcp_host::gemini, "gemini", "Gemini CLI", read_config_json, read_gemini,
             read_gemini_switches},
    host_row{mcp_host::codex, "codex", "Codex", read_config_toml, read_codex, nullptr},
    host_row{mcp_host::opencode, "opencode", "OpenCode", read_config_json, read_opencode, nullptr},
    host_row{mcp_host::zed, "zed", "Zed", read_config_json, read_zed, nullptr},
    host_row{mcp_host::goose, "goose", "Goose", read_config_yaml, read_goose, nullptr},
};

const host_row& row_of(mcp_host host) {
  return *std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.host == host; });
}

/// As hosts write a server's name where it is a part of a tool's name.
std::string plain_name(std::string_view name) {
  std::string result;
  for (char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
    result += plain ? c : '_';
  }
  return result;
}

bool names(const std::set<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const auto& each) { return lower_case(each) == lower_case(name); });
}

/// Switches off, in what was read, what other files or lists switch off.
void apply_switches(host_reading& reading) {
  for (auto& [name, entry] : reading.result.servers.items()) {
    if (names(reading.switched_off, name) ||
        (reading.switched_on && !names(*reading.switched_on, name))) {
      entry["disabled"] = true;
    }
    for (const auto& [server, tools] : reading.denied) {
      if (server != name && server != plain_name(name)) {
        continue;
      }
      for (const auto& tool : tools) {
        if (tool == "*") {
          entry["disabled"] = true;
        } else {
          entry["excludeTools"].push_back(tool);
        }
      }
    }
  }
}

void read_file(host_reading& reading, const host_row& row) {
  auto document = row.parse(reading.file->text, {largest_host_file, most_nodes});
  if (!document) {
    reading.report({}, document.error().message);
    return;
  }
  auto read = reading.file->switches ? row.read_switches : row.read;
  if (read != nullptr) {
    read(reading, *document);
  }
}

} // namespace

std::string_view to_string(mcp_host host) {
  return row_of(host).name;
}

std::string_view title_of(mcp_host host) {
  return row_of(host).shown;
}

std::optional<mcp_host> host_from_string(std::string_view name) {
  auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  return found != rows.end() ? std::optional{found->host} : std::nullopt;
}

std::string_view to_string(host_scope scope) {
  return scope == host_scope::user ? "user" : scope == host_scope::local ? "local" : "project";
}

std::optional<host_scope> scope_from_string(std::string_view name) {
  for (auto scope : {host_scope::user, host_scope::local, host_scope::project}) {
    if (to_string(scope) == name) {
      return scope;
    }
  }
  return std::nullopt;
}

host_servers read_host_files(const std::vector<host_file>& files,
                             const host_reader_context& context) {
  host_reading reading{context};
  for (const auto& file : files) {
    reading.file = &file;
    read_file(reading, row_of(context.host));
  }
  apply_switches(reading);
  return std::move(reading.result);
}

} // namespace bulkhead
