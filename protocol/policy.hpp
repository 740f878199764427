#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// What a server's own entry says of its tools, in globs on their raw names.
struct tool_filter {
  std::optional<std::vector<std::string>> include; ///< only these
  std::vector<std::string> exclude;                ///< not these
  friend bool operator==(const tool_filter&, const tool_filter&) = default;
};

/// Which servers and tools the user allows at all. Patterns are globs (`*`, `?`) on `server` or on
/// `server/tool`, raw names; a pattern without a slash speaks of the whole server. Deny wins over
/// allow. Without an allow list all is allowed that isn't denied; with one, only what it names.
/// A server's filter narrows what is left.
struct policy {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  /// Not empty: nothing is allowed, whatever the lists say, and this is why. For a configuration
  /// that can't be read or understood may have meant to deny anything.
  std::string closed = {};
  bool has_allow = false; ///< there is an allow list, if only an empty one
  std::map<std::string, tool_filter, std::less<>> filters = {}; ///< by server, raw name
  bool only_listed() const { return has_allow || !allow.empty(); }
  friend bool operator==(const policy&, const policy&) = default;
};

/// The answer to "may this be used": `rule` says what forbids it, for error texts, e.g.
/// `deny rule "github/*"`, "not in the allow list", "not among the servers of this run".
struct policy_verdict {
  bool allowed = true;
  std::string rule;
};

/// May `server` be seen and started? It may not if denied as a whole (`server` or `server/*`), or
/// if the allow list names neither it nor one of its tools.
policy_verdict allows_server(const policy& rules, std::string_view server);

/// May `tool` of `server` be seen and called?
policy_verdict allows_tool(const policy& rules, std::string_view server, std::string_view tool);

/// Does `text` match `glob` (`*` any run of bytes, `?` one byte)? Case counts. No
/// recursion; at worst |glob| × |text| steps, whatever the number of stars.
bool glob_match(std::string_view glob, std::string_view text);

/// The rights of one run: the requested servers that policy allows, and the tools within. The one
/// place where "may this run call that" is decided.
class run_rights {
public:
  run_rights() = default;
  /// `servers`: the raw names the run asked for, known to exist.
  run_rights(policy rules, std::vector<std::string> servers);

  /// The servers this run may use, raw names, sorted.
  const std::vector<std::string>& servers() const { return servers_; }

  policy_verdict server(std::string_view name) const;
  policy_verdict tool(std::string_view server, std::string_view tool) const;

private:
  policy rules_;
  std::vector<std::string> servers_;
};

} // namespace bulkhead
