#include "protocol/policy.hpp"

#include <algorithm>
#include <utility>

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

policy_verdict denied_by(const std::string& pattern) {
  return {false, "deny rule \"" + pattern + "\""};
}

const policy_verdict not_in_allow_list = {false, "not in the allow list"};

/// What the server's own entry says of a tool.
policy_verdict filtered(const policy& rules, std::string_view server, std::string_view tool) {
  auto found = rules.filters.find(server);
  if (found == rules.filters.end()) {
    return {};
  }
  const auto& [include, exclude] = found->second;
  auto matches = [&](const std::string& pattern) { return glob_match(pattern, tool); };
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

policy_verdict allows_server(const policy& rules, std::string_view server) {
  if (!rules.closed.empty()) {
    return {false, rules.closed};
  }
  for (const auto& pattern : rules.deny) {
    auto parts = split(pattern);
    if (parts.whole_server() && glob_match(parts.server, server)) {
      return denied_by(pattern);
    }
  }
  auto named = [&](const std::string& pattern) {
    return glob_match(split(pattern).server, server);
  };
  if (rules.only_listed() && std::none_of(rules.allow.begin(), rules.allow.end(), named)) {
    return not_in_allow_list;
  }
  return {};
}

policy_verdict allows_tool(const policy& rules, std::string_view server, std::string_view tool) {
  if (!rules.closed.empty()) {
    return {false, rules.closed};
  }
  auto matches = [&](const std::string& pattern) {
    auto parts = split(pattern);
    return glob_match(parts.server, server) && glob_match(parts.tool, tool);
  };
  auto denial = std::find_if(rules.deny.begin(), rules.deny.end(), matches);
  if (denial != rules.deny.end()) {
    return denied_by(*denial);
  }
  if (rules.only_listed() && std::none_of(rules.allow.begin(), rules.allow.end(), matches)) {
    return not_in_allow_list;
  }
  return filtered(rules, server, tool);
}

run_rights::run_rights(policy rules, std::vector<std::string> servers)
    : rules_(std::move(rules)), servers_(std::move(servers)) {
  std::erase_if(servers_,
                [&](const std::string& name) { return !allows_server(rules_, name).allowed; });
  std::sort(servers_.begin(), servers_.end());
  servers_.erase(std::unique(servers_.begin(), servers_.end()), servers_.end());
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

policy_verdict run_rights::tool(std::string_view server_name, std::string_view tool_name) const {
  if (auto verdict = server(server_name); !verdict.allowed) {
    return verdict;
  }
  return allows_tool(rules_, server_name, tool_name);
}

} // namespace bulkhead
