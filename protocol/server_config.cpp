#include "protocol/server_config.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/ascii.hpp"
#include "protocol/config_keys.hpp"
#include "protocol/config_text.hpp"
#include "protocol/policy_reader.hpp"
#include "protocol/server_entry_reader.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
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

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

/// The lists of an entry that was read well.
tool_filter read_filter(const json& entry) {
  tool_filter result;
  if (auto include = entry.find("includeTools"); include != entry.end()) {
    result.include = include->get<std::vector<std::string>>();
  }
  if (auto exclude = entry.find("excludeTools"); exclude != entry.end()) {
    result.exclude = exclude->get<std::vector<std::string>>();
  }
  return result;
}

/// Is it there to restrict anything? `"tools": ["*"]` and empty lists of the disabled aren't.
bool has_effect(const std::string& key, const json& value) {
  if (value.is_null() || (key == "tools" && value == json::array({"*"}))) {
    return false;
  }
  bool forbids = key == "deny" || key.starts_with("disabled") || key.starts_with("exclude");
  return !forbids || !value.is_array() || !value.empty();
}

/// Are there credentials that go unencrypted to another machine?
bool sends_credentials_openly(const server_entry& entry) {
  auto url = entry.url.empty() ? expected<web_url>{} : read_web_url(entry.url, "url");
  return url && url->scheme == "http" && !url->is_loopback() &&
         std::any_of(entry.headers.begin(), entry.headers.end(), [](const auto& header) {
           return lower_case(header.first) == "authorization";
         });
}

/// What the last definition of a name so far says.
struct candidate {
  std::string file;
  std::optional<server_entry> entry;
  bool disabled = false;
  bool itself = false; ///< it would start this program
  tool_filter filter = {};
  std::size_t source = 0; ///< its place among the catalogue's sources
};

class catalogue_reader {
public:
  catalogue_reader(const environment_lookup& environment, std::string_view home,
                   const self_check& self, const file_lookup& files)
      : environment_(environment), home_(home), self_(self), files_(files) {}

  void read_file(const config_file& file);
  server_catalogue finish();

private:
  void report(std::string entry, std::string message, problem_kind kind = problem_kind::error) {
    result_.problems.push_back({file_, std::move(entry), std::move(message), kind});
  }
  void remark(std::string entry, std::string message) {
    report(std::move(entry), std::move(message), problem_kind::remark);
  }
  void deny_all(std::string entry, const std::string& message) {
    report(std::move(entry), fmt::format("{}{} every server is denied until that is repaired",
                                         message, message.ends_with('?') ? "" : ";"));
    if (result_.rules.closed.empty()) {
      result_.rules.closed =
          fmt::format("every server is denied until {} is repaired: {}", file_, message);
    }
  }
  void reject_file(const std::string& why);
  void read_document(const json& document);
  void read_top_keys(const json& document);
  void read_servers(const char* key, const json& servers);
  void read_server(const std::string& name, const json& value);
  std::optional<server_entry> usable_entry(const std::string& name, const json& value);
  const std::string& source_of(const std::string& name) const;
  bool sound_keys(const std::string& name, const json& value);
  void take_finding(policy_finding& finding);
  void settle_sources();

  const environment_lookup& environment_;
  std::string_view home_;
  const self_check& self_;
  const file_lookup& files_;
  std::string file_;
  const imported_file* imported_ = nullptr; ///< of the file being read, if it is another program's
  bool own_start_ = false;                  ///< the entry read last would start this program
  std::map<std::string, candidate> candidates_;
  server_catalogue result_;
};

void catalogue_reader::read_file(const config_file& file) {
  file_ = file.path;
  imported_ = file.imported ? &*file.imported : nullptr;
  result_.sources.push_back({file_, imported_ != nullptr ? imported_->host : std::string{}});
  if (imported_ != nullptr) {
    result_.problems.insert(result_.problems.end(), imported_->problems.begin(),
                            imported_->problems.end());
  }
  if (!file.refusal.empty()) {
    reject_file(file.refusal);
    return;
  }
  auto document = read_config_json(file.text, {largest_config_file});
  if (!document) {
    reject_file(document.error().message);
    return;
  }
  read_document(*document);
}

/// Another program's file has no policy of ours that could be lost with it.
void catalogue_reader::reject_file(const std::string& why) {
  if (imported_ != nullptr) {
    report({}, why);
  } else {
    deny_all({}, why);
  }
}

void catalogue_reader::read_document(const json& document) {
  for (const char* key : {"mcpServers", "servers"}) {
    if (auto servers = document.find(key); servers != document.end()) {
      read_servers(key, *servers);
    }
  }
  if (auto rules = document.find("policy"); rules != document.end()) {
    for (auto& finding : read_policy(*rules, file_, result_.rules)) {
      take_finding(finding);
    }
  }
  read_top_keys(document);
}

void catalogue_reader::read_top_keys(const json& document) {
  bool used = false;
  std::vector<std::string> others;
  for (const auto& key : keys_of(document)) {
    auto kind = classify_top_key(key);
    used = used || kind != top_key::other;
    if (kind == top_key::policy_mistake) {
      deny_all({},
               belongs_in_policy(key)
                   ? fmt::format("has \"{0}\" outside of a policy; write \"policy\": "
                                 "{{\"{0}\": …}}",
                                 key)
                   : fmt::format("unknown key \"{}\"{}", shown_name(key), did_you_mean("policy")));
    } else if (kind == top_key::other) {
      others.push_back(key);
    }
  }
  auto findings = judge_top_keys(others);
  for (auto& mistake : findings.mistakes) {
    report({}, std::move(mistake));
  }
  if (!used && findings.mistakes.empty()) {
    report({}, "has neither \"mcpServers\" nor \"servers\" nor \"policy\"; nothing in it was used");
  } else if (!findings.remark.empty()) {
    remark({}, std::move(findings.remark));
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
    report(shown_name(name), problem);
    return;
  }
  if (auto earlier = candidates_.find(name); earlier != candidates_.end()) {
    result_.problems.push_back(
        {earlier->second.file, name,
         fmt::format("is shadowed by the entry of the same name in {}", file_),
         problem_kind::remark});
  }
  if (value.is_object() && !value.contains("command") &&
      (value.contains("deny") || value.contains("allow"))) {
    deny_all(name, "has the lists of a policy; \"policy\" belongs beside mcpServers, not into it");
    return;
  }
  bool disabled = value.is_object() && value.value("disabled", json{}) == json(true);
  own_start_ = false;
  auto entry = disabled ? std::nullopt : usable_entry(name, value);
  auto filter = entry ? read_filter(value) : tool_filter{};
  auto source = result_.sources.size() - 1;
  candidates_[name] = {source_of(name), std::move(entry),  disabled,
                       own_start_,      std::move(filter), source};
  result_.sources[source].servers.push_back({name});
}

/// The file that an entry is from: of several that were imported together, the one.
const std::string& catalogue_reader::source_of(const std::string& name) const {
  if (imported_ != nullptr) {
    if (auto found = imported_->sources.find(name); found != imported_->sources.end()) {
      return found->second;
    }
  }
  return file_;
}

/// Are the entry's keys such that it can be used? Says what is odd.
bool catalogue_reader::sound_keys(const std::string& name, const json& value) {
  auto findings = judge_entry_keys(keys_of(value));
  for (auto& mistake : findings.mistakes) {
    report(name, std::move(mistake) +
                     (findings.vital ? " The server isn't used until that is repaired." : ""));
  }
  if (!findings.remark.empty()) {
    remark(name, std::move(findings.remark));
  }
  bool sound = !findings.vital;
  for (const auto& [key, member] : value.items()) {
    if (restricts_tools(key) && has_effect(key, member)) {
      report(name, fmt::format("\"{}\" has no effect in an entry, so the server isn't used; write "
                               "\"policy\": {{\"deny\": [\"{}/TOOL\"]}} beside mcpServers",
                               key, name));
      sound = false;
    }
  }
  return sound;
}

std::optional<server_entry> catalogue_reader::usable_entry(const std::string& name,
                                                           const json& value) {
  if (value.is_object() && !sound_keys(name, value)) {
    return std::nullopt;
  }
  auto entry = server_entry_reader(value, environment_, home_, files_).read();
  if (!entry) {
    report(name, entry.error().message);
    return std::nullopt;
  }
  if (sends_credentials_openly(*entry)) {
    remark(name, "sends its Authorization header over http, where others can read it; use https");
  }
  if (!self_.allowed && entry->transport == server_transport::stdio &&
      starts_self(self_, entry->command, entry->args)) {
    own_start_ = true;
    if (imported_ != nullptr) {
      remark(name, "is this program itself, so it is left out");
    } else {
      report(name,
             "would start this program again, which would then start its own servers; skipped "
             "(MCP_BRIDGE_ALLOW_SELF_SERVER=1 allows it)");
    }
    return std::nullopt;
  }
  entry->name = name;
  entry->source = source_of(name);
  return std::move(*entry);
}

void catalogue_reader::take_finding(policy_finding& finding) {
  if (finding.how == policy_finding::weight::closes) {
    deny_all("policy", finding.message);
    return;
  }
  auto kind =
      finding.how == policy_finding::weight::error ? problem_kind::error : problem_kind::remark;
  result_.problems.push_back({std::move(finding.file), "policy", std::move(finding.message), kind});
}

/// Says of each definition what became of it.
void catalogue_reader::settle_sources() {
  using enum definition_state;
  for (std::size_t at = 0; at < result_.sources.size(); ++at) {
    for (auto& each : result_.sources[at].servers) {
      const auto& winner = candidates_.at(each.name);
      each.state = winner.source != at ? shadowed
                   : winner.entry      ? used
                   : winner.disabled   ? disabled
                   : winner.itself     ? itself
                                       : unusable;
      if (each.state == shadowed) {
        each.shadowed_by = winner.file;
      }
    }
  }
}

server_catalogue catalogue_reader::finish() {
  std::vector<std::string_view> known;
  for (const auto& [name, found] : candidates_) {
    known.push_back(name);
  }
  for (auto& finding : check_patterns(result_.rules, known)) {
    take_finding(finding);
  }
  settle_sources();
  std::vector<std::string> names;
  for (auto& [name, found] : candidates_) {
    if (found.entry) {
      names.push_back(name);
      if (found.filter != tool_filter{}) {
        result_.rules.filters[name] = std::move(found.filter);
      }
      result_.servers.push_back(std::move(*found.entry));
    } else if (found.disabled) {
      result_.disabled.push_back({name, found.file});
    }
  }
  auto aliases = python_aliases(names);
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    result_.servers[i].alias = std::move(aliases[i]);
  }
  return std::move(result_);
}

} // namespace

server_catalogue read_server_config(const std::vector<config_file>& files,
                                    const environment_lookup& environment, std::string_view home,
                                    const self_check& self, const file_lookup& referred) {
  catalogue_reader reader(environment, home, self, referred);
  for (const auto& file : files) {
    reader.read_file(file);
  }
  return reader.finish();
}

} // namespace bulkhead
