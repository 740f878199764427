#include "protocol/server_config.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_scan.hpp"
#include "protocol/server_entry_reader.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t longest_pattern = 512;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// A name as problems show it: short, and harmless to a terminal.
std::string shown(std::string_view name) {
  constexpr std::size_t longest = longest_server_name;
  std::string result;
  for (char c : name.substr(0, longest)) {
    result += is_control(c) ? '?' : c;
  }
  return name.size() > longest ? result + "…" : result;
}

std::string name_problem(std::string_view name) {
  if (name.empty()) {
    return "the name is empty";
  }
  if (name.size() > longest_server_name) {
    return fmt::format("the name has {} bytes, more than the {} allowed", name.size(),
                       longest_server_name);
  }
  if (name.find('/') != std::string_view::npos) {
    return "the name holds a slash, which separates server and tool in policy patterns";
  }
  if (std::any_of(name.begin(), name.end(), is_control)) {
    return "the name holds a control character";
  }
  return {};
}

/// "line 3, column 7" of the first syntax error; empty if the text is no syntax error's.
std::string error_position(std::string_view text) {
  auto discard = [](int, json::parse_event_t, json&) { return false; };
  try {
    [[maybe_unused]] auto nothing = json::parse(text, discard);
    return {};
  } catch (const json::parse_error& caught) {
    // The exception's own text quotes the file, which may hold secrets: only its place is used.
    auto before = text.substr(0, caught.byte > 0 ? caught.byte - 1 : 0);
    auto line_start = before.rfind('\n') + 1; // npos + 1 is 0
    return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                       before.size() - line_start + 1);
  }
}

/// What the last definition of a name so far says.
struct candidate {
  std::string file;
  std::optional<server_entry> entry;
};

class catalogue_reader {
public:
  catalogue_reader(const environment_lookup& environment, std::string_view home,
                   const self_check& self)
      : environment_(environment), home_(home), self_(self) {}

  void read_file(const config_file& file);
  server_catalogue finish();

private:
  void report(std::string entry, std::string message) {
    result_.problems.push_back({file_, std::move(entry), std::move(message)});
  }
  void deny_all(const std::string& message) {
    report("policy", message + "; every server is denied until that is repaired");
    result_.rules.deny.emplace_back("*");
  }
  void read_document(const json& document);
  void read_servers(const char* key, const json& servers);
  void read_server(const std::string& name, const json& value);
  std::optional<server_entry> usable_entry(const std::string& name, const json& value);
  void read_policy(const json& value);
  bool read_patterns(const json& value, const std::string& key, std::vector<std::string>& target);

  const environment_lookup& environment_;
  std::string_view home_;
  const self_check& self_;
  std::string file_;
  std::map<std::string, candidate> candidates_;
  server_catalogue result_;
};

void catalogue_reader::read_file(const config_file& file) {
  file_ = file.path;
  // Looked for in the raw text: a file that can't be read may still have meant to deny something.
  bool mentions_policy = file.text.find("\"policy\"") != std::string::npos;
  auto unusable = [&](const std::string& message) {
    report({}, message);
    if (mentions_policy) {
      deny_all("the file can't be read and mentions a policy");
    }
  };
  if (file.text.size() > largest_config_file) {
    unusable(fmt::format("has {} bytes, more than the {} allowed", file.text.size(),
                         largest_config_file));
    return;
  }
  auto text = strip_json_comments(file.text);
  auto scanned = scan_json(text, scan_limits{.bytes = largest_config_file});
  if (!scanned) {
    auto position = error_position(text);
    unusable(position.empty() ? scanned.error().message
                              : fmt::format("{}: {}", position, scanned.error().message));
    return;
  }
  if (!scanned->is_object) {
    unusable("must hold a JSON object with an \"mcpServers\" member");
    return;
  }
  read_document(json::parse(text));
}

void catalogue_reader::read_document(const json& document) {
  bool any = false;
  for (const char* key : {"mcpServers", "servers"}) {
    if (auto servers = document.find(key); servers != document.end()) {
      any = true;
      read_servers(key, *servers);
    }
  }
  if (auto rules = document.find("policy"); rules != document.end()) {
    any = true;
    read_policy(*rules);
  }
  if (!any) {
    report({}, "has neither \"mcpServers\" nor \"servers\" nor \"policy\"; nothing in it was used");
  }
}

void catalogue_reader::read_servers(const char* key, const json& servers) {
  if (!servers.is_object()) {
    report({}, fmt::format("{} must be an object with an entry for each server, but is {} {}", key,
                           servers.is_array() ? "an" : "a", servers.type_name()));
    return;
  }
  for (const auto& [name, value] : servers.items()) {
    read_server(name, value);
  }
}

void catalogue_reader::read_server(const std::string& name, const json& value) {
  if (auto problem = name_problem(name); !problem.empty()) {
    report(shown(name), problem);
    return;
  }
  if (auto earlier = candidates_.find(name); earlier != candidates_.end()) {
    result_.problems.push_back(
        {earlier->second.file, name,
         fmt::format("is shadowed by the entry of the same name in {}", file_)});
  }
  candidates_[name] = {file_, usable_entry(name, value)};
}

std::optional<server_entry> catalogue_reader::usable_entry(const std::string& name,
                                                           const json& value) {
  auto entry = server_entry_reader(value, environment_, home_).read();
  if (!entry) {
    report(name, entry.error().message);
    return std::nullopt;
  }
  if (!self_.allowed && starts_self(self_, entry->command, entry->args)) {
    report(name, "would start this program again, which would then start its own servers; skipped "
                 "(MCP_BRIDGE_ALLOW_SELF_SERVER=1 allows it)");
    return std::nullopt;
  }
  entry->name = name;
  entry->source = file_;
  return std::move(*entry);
}

void catalogue_reader::read_policy(const json& value) {
  if (!value.is_object()) {
    deny_all("policy must be an object of the lists allow and deny");
    return;
  }
  bool sound = true;
  for (const auto& [key, patterns] : value.items()) {
    if (key == "allow") {
      sound = read_patterns(patterns, key, result_.rules.allow) && sound;
    } else if (key == "deny") {
      sound = read_patterns(patterns, key, result_.rules.deny) && sound;
    } else {
      deny_all(fmt::format("policy has the unknown member \"{}\"; it may have allow and deny",
                           shown(key)));
    }
  }
  if (!sound) {
    result_.rules.deny.emplace_back("*");
  }
}

bool catalogue_reader::read_patterns(const json& value, const std::string& key,
                                     std::vector<std::string>& target) {
  auto usable = [](const json& pattern) {
    return pattern.is_string() && !pattern.get_ref<const std::string&>().empty() &&
           pattern.get_ref<const std::string&>().size() <= longest_pattern;
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), usable)) {
    report("policy", fmt::format("policy.{} must be an array of patterns such as \"server\" or "
                                 "\"server/tool*\"; every server is denied until that is repaired",
                                 key));
    return false;
  }
  if (key == "allow" && value.empty()) {
    report("policy",
           "policy.allow is empty and allows every server; \"deny\": [\"*\"] forbids all");
  }
  for (const auto& pattern : value) {
    target.push_back(pattern.get<std::string>());
  }
  return true;
}

server_catalogue catalogue_reader::finish() {
  std::vector<std::string> names;
  for (auto& [name, found] : candidates_) {
    if (found.entry) {
      names.push_back(name);
      result_.servers.push_back(std::move(*found.entry));
    }
  }
  auto aliases = python_aliases(names);
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    result_.servers[i].alias = std::move(aliases[i]);
  }
  return std::move(result_);
}

} // namespace

const server_entry* server_catalogue::find(std::string_view name) const {
  auto by = [&](auto member) {
    return std::find_if(servers.begin(), servers.end(),
                        [&](const server_entry& entry) { return entry.*member == name; });
  };
  auto found = by(&server_entry::name);
  if (found == servers.end()) {
    found = by(&server_entry::alias);
  }
  return found != servers.end() ? &*found : nullptr;
}

server_catalogue read_server_config(const std::vector<config_file>& files,
                                    const environment_lookup& environment, std::string_view home,
                                    const self_check& self) {
  catalogue_reader reader(environment, home, self);
  for (const auto& file : files) {
    reader.read_file(file);
  }
  return reader.finish();
}

} // namespace bulkhead
