#include "protocol/policy.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"
#include "protocol/tool_documents.hpp"

namespace bulkhead {

namespace {

/// A pattern's two halves; `tool` is `*` for one that speaks of a whole server.
struct split_pattern {
  std::string_view server;
  std::string_view tool;

  bool whole_server() const { return tool == "*"; }
};

split_pattern split(std::string_view pattern) {
  // Server names hold no slash, tool names may: the first one separates.
  auto slash = pattern.find('/');
  if (slash == std::string_view::npos) {
    return {pattern, "*"};
  }
  return {pattern.substr(0, slash), pattern.substr(slash + 1)};
}

/// By the name that a server or a tool has, or the one that code has for it: people see both.
bool names(std::string_view glob, std::string_view name) {
  return glob_match(glob, name) || glob_match(glob, python_identifier(name));
}

std::string place_of(const std::string& file) {
  return file.empty() ? std::string{} : fmt::format(" ({})", file);
}

std::string quoted(std::string_view kind, const policy_pattern& pattern) {
  return fmt::format("{} rule \"{}\"{}", kind, pattern.text, place_of(pattern.file));
}

const policy_pattern* naming(const std::vector<policy_pattern>& patterns, std::string_view server,
                             std::string_view tool) {
  auto names = [&](const policy_pattern& each) { return names_tool(each.text, server, tool); };
  auto found = std::find_if(patterns.begin(), patterns.end(), names);
  return found != patterns.end() ? &*found : nullptr;
}

/// The verdict of the allow lists, each of which has to name something; `names` tells whether a
/// pattern does.
template <class Names>
policy_verdict listed(const policy& rules, Names names) {
  std::set<std::string_view> lists{rules.allow_files.begin(), rules.allow_files.end()};
  for (const auto& pattern : rules.allow) {
    lists.insert(pattern.file);
  }
  for (const auto& pattern : rules.allow) {
    if (names(pattern.text)) {
      lists.erase(pattern.file);
    }
  }
  if (lists.empty()) {
    return {};
  }
  return {false, lists.begin()->empty()
                     ? "not in the allow list"
                     : fmt::format("not in the allow list of {}", *lists.begin())};
}

/// What the server's own entry says of a tool.
policy_verdict filtered(const policy& rules, std::string_view server, std::string_view tool) {
  auto found = rules.filters.find(server);
  if (found == rules.filters.end()) {
    return {};
  }
  const auto& [include, exclude] = found->second;
  auto matches = [&](const std::string& pattern) { return names(pattern, tool); };
  auto excluded = std::find_if(exclude.begin(), exclude.end(), matches);
  if (excluded != exclude.end()) {
    return {false, "\"" + *excluded + "\" of excludeTools in the server's entry"};
  }
  if (include && std::none_of(include->begin(), include->end(), matches)) {
    return {false, "not in includeTools of the server's entry"};
  }
  return {};
}

} // namespace

bool glob_match(std::string_view glob, std::string_view text) {
  std::size_t at_glob = 0;
  std::size_t at_text = 0;
  auto last_star = std::string_view::npos;
  std::size_t resume = 0;
  while (at_text < text.size()) {
    if (at_glob < glob.size() && glob[at_glob] == '*') {
      last_star = at_glob++;
      resume = at_text;
    } else if (at_glob < glob.size() && (glob[at_glob] == '?' || glob[at_glob] == text[at_text])) {
      ++at_glob;
      ++at_text;
    } else if (last_star != std::string_view::npos) {
      // Only the last star can take more: earlier ones already gave the leftmost match.
      at_glob = last_star + 1;
      at_text = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at_glob) == std::string_view::npos;
}

bool names_server(std::string_view pattern, std::string_view server) {
  return names(split(pattern).server, server);
}

bool names_tool(std::string_view pattern, std::string_view server, std::string_view tool) {
  auto parts = split(pattern);
  return names(parts.server, server) && names(parts.tool, tool);
}

tool_traits traits_of(const tool_document& tool) {
  auto annotations = nlohmann::json::parse(tool.annotations, nullptr, false);
  auto says = [&](const char* hint, bool what) {
    auto found = annotations.is_object() ? annotations.find(hint) : annotations.end();
    return found != annotations.end() && *found == nlohmann::json(what);
  };
  tool_traits result;
  result.read_only = says("readOnlyHint", true) && !says("destructiveHint", true);
  result.destructive = !result.read_only && !says("destructiveHint", false);
  return result;
}

policy_verdict allows_server(const policy& rules, std::string_view server) {
  if (!rules.closed.empty()) {
    return {false, rules.closed};
  }
  for (const auto& pattern : rules.deny) {
    auto parts = split(pattern.text);
    if (parts.whole_server() && names(parts.server, server)) {
      return {false, quoted("deny", pattern)};
    }
  }
  return listed(rules,
                [&](std::string_view pattern) { return names(split(pattern).server, server); });
}

policy_verdict allows_tool_name(const policy& rules, std::string_view server,
                                std::string_view tool) {
  if (!rules.closed.empty()) {
    return {false, rules.closed};
  }
  if (const auto* denial = naming(rules.deny, server, tool)) {
    return {false, quoted("deny", *denial)};
  }
  auto verdict =
      listed(rules, [&](std::string_view pattern) { return names_tool(pattern, server, tool); });
  return verdict.allowed ? filtered(rules, server, tool) : verdict;
}

policy_verdict allows_tool(const policy& rules, std::string_view server,
                           const tool_document& tool) {
  auto verdict = allows_tool_name(rules, server, tool.name);
  if (!verdict.allowed) {
    return verdict;
  }
  if (const auto* rule = naming(rules.read_only, server, tool.name);
      rule != nullptr && !traits_of(tool).read_only) {
    return {false, quoted("readOnly", *rule) + ", and the tool doesn't say of itself that it only "
                                               "reads (annotation readOnlyHint)"};
  }
  if (const auto* rule = naming(rules.confirm, server, tool.name)) {
    return {true, quoted("confirm", *rule), true};
  }
  if (!rules.confirm_destructive.empty() && traits_of(tool).destructive) {
    return {true,
            fmt::format("confirm rule \"destructive\"{}", place_of(rules.confirm_destructive)),
            true};
  }
  return {};
}

std::vector<std::string> describe(const policy& rules) {
  if (!rules.closed.empty()) {
    return {rules.closed};
  }
  std::vector<std::string> lines;
  auto add = [&](const char* kind, std::string_view what, const std::string& file) {
    lines.push_back(fmt::format("{} {}{}", kind, what, place_of(file)));
  };
  auto add_all = [&](const char* kind, const std::vector<policy_pattern>& patterns) {
    for (const auto& each : patterns) {
      add(kind, each.text, each.file);
    }
  };
  auto add_limits = [&](const char* kind, const std::vector<policy_limit>& limits) {
    for (const auto& each : limits) {
      add(kind,
          each.pattern.empty() ? fmt::format("{}", each.most)
                               : fmt::format("{}: {}", each.pattern, each.most),
          each.file);
    }
  };
  add_all("deny", rules.deny);
  add_all("allow", rules.allow);
  for (const auto& file : rules.allow_files) {
    auto is_of = [&](const policy_pattern& each) { return each.file == file; };
    if (std::none_of(rules.allow.begin(), rules.allow.end(), is_of)) {
      add("allow", "nothing", file);
    }
  }
  add_all("readOnly", rules.read_only);
  add_all("confirm", rules.confirm);
  if (!rules.confirm_destructive.empty()) {
    add("confirm", "destructive", rules.confirm_destructive);
  }
  add_limits("callsPerRun", rules.calls_per_run);
  add_limits("callsPerMinute", rules.calls_per_minute);
  add_limits("perTool", rules.calls_per_tool);
  return lines;
}

run_rights::run_rights(policy rules, std::vector<std::string> servers)
    : rules_(std::move(rules)), servers_(std::move(servers)) {
  std::erase_if(servers_,
                [&](const std::string& name) { return !allows_server(rules_, name).allowed; });
  std::sort(servers_.begin(), servers_.end());
  servers_.erase(std::unique(servers_.begin(), servers_.end()), servers_.end());
}

void run_rights::narrow(policy rules) {
  if (rules == rules_) {
    return;
  }
  auto add = [&](std::vector<policy_limit> policy::*limits) {
    (rules_.*limits).insert((rules_.*limits).end(), (rules.*limits).begin(), (rules.*limits).end());
  };
  add(&policy::calls_per_run);
  add(&policy::calls_per_minute);
  add(&policy::calls_per_tool);
  std::erase_if(servers_,
                [&](const std::string& name) { return !allows_server(rules, name).allowed; });
  bounds_.push_back(std::move(rules));
}

policy_verdict run_rights::server(std::string_view name) const {
  if (auto verdict = allows_server(rules_, name); !verdict.allowed) {
    return verdict;
  }
  if (!std::binary_search(servers_.begin(), servers_.end(), name)) {
    return {false, "not among the servers of this run"};
  }
  return {};
}

/// Of the verdicts that `ask` gives for each policy.
template <class Ask>
policy_verdict run_rights::strictest(std::string_view server_name, Ask ask) const {
  auto verdict = server(server_name);
  if (!verdict.allowed) {
    return verdict;
  }
  verdict = ask(rules_);
  for (const auto& rules : bounds_) {
    auto other = ask(rules);
    if (verdict.allowed && (!other.allowed || (other.confirm && !verdict.confirm))) {
      verdict = std::move(other);
    }
  }
  return verdict;
}

policy_verdict run_rights::tool(std::string_view server_name, const tool_document& tool) const {
  return strictest(server_name,
                   [&](const policy& rules) { return allows_tool(rules, server_name, tool); });
}

policy_verdict run_rights::tool_name(std::string_view server_name, std::string_view tool) const {
  return strictest(server_name,
                   [&](const policy& rules) { return allows_tool_name(rules, server_name, tool); });
}

} // namespace bulkhead
