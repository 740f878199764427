#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead {

struct tool_document;

/// A glob (`*`, `?`) on `server` or `server/tool`, raw names, and where it stands. One without a
/// slash speaks of the whole server.
struct policy_pattern {
  std::string text;
  std::string file; ///< for error texts; may be empty

  policy_pattern(std::string pattern, std::string where = {})
      : text{std::move(pattern)}, file{std::move(where)} {}
  policy_pattern(const char* pattern) : text{pattern} {}
  friend bool operator==(const policy_pattern&, const policy_pattern&) = default;
};

/// At most so many calls.
struct policy_limit {
  std::uint32_t most = 0;
  std::string file;    ///< where it stands
  std::string pattern; ///< of the tools that it counts; empty: all
  friend bool operator==(const policy_limit&, const policy_limit&) = default;
};

/// What a server's own entry says of its tools, in globs on their raw names.
struct tool_filter {
  std::optional<std::vector<std::string>> include; ///< only these
  std::vector<std::string> exclude;                ///< not these
  friend bool operator==(const tool_filter&, const tool_filter&) = default;
};

/// Which servers and tools the user allows at all. Deny wins over allow. Without an allow list all
/// is allowed that isn't denied; with one, only what it names; with several, only what each of them
/// names. What several files say adds up, so that the stricter one wins. A server's filter narrows
/// what is left.
struct policy {
  std::vector<policy_pattern> allow;
  std::vector<policy_pattern> deny;
  /// Not empty: nothing is allowed, whatever the lists say, and this is why. For a configuration
  /// that can't be read or understood may have meant to deny anything.
  std::string closed = {};
  std::vector<std::string> allow_files = {}; ///< that have an allow list, if only an empty one
  /// Of tools that these name, only those that say of themselves that they are read-only.
  std::vector<policy_pattern> read_only = {};
  /// Calls of tools that these name need a person's yes.
  std::vector<policy_pattern> confirm = {};
  /// Not empty: so do those of tools that may destroy something; the file that says so.
  std::string confirm_destructive = {};
  std::vector<policy_limit> calls_per_run = {};
  std::vector<policy_limit> calls_per_minute = {};
  std::vector<policy_limit> calls_per_tool =
      {}; ///< of one run, those that a pattern names together
  std::map<std::string, tool_filter, std::less<>> filters = {}; ///< by server, raw name

  bool only_listed() const { return !allow_files.empty() || !allow.empty(); }
  friend bool operator==(const policy&, const policy&) = default;
};

/// The answer to "may this be used": `rule` says what forbids it, for error texts, e.g.
/// `deny rule "github/*" (/home/ann/MCPs/policy.json)`, "not in the allow list", "not among the
/// servers of this run".
struct policy_verdict {
  bool allowed = true;
  std::string rule = {};
  /// It is allowed once a person has said yes; `rule` is why.
  bool confirm = false;
};

/// What a tool says of itself (MCP 2025-11-25, ToolAnnotations). Nothing said is the worst; so is
/// what contradicts itself.
struct tool_traits {
  bool read_only = false;
  bool destructive = true;
};
tool_traits traits_of(const tool_document& tool);

/// May `server` be seen and started? It may not if denied as a whole (`server` or `server/*`), or
/// if an allow list names neither it nor one of its tools.
policy_verdict allows_server(const policy& rules, std::string_view server);

/// May `tool` of `server` be seen and called?
policy_verdict allows_tool(const policy& rules, std::string_view server, const tool_document& tool);

/// As far as a tool's name alone tells, for names that no document has; what this allows may be
/// denied by `allows_tool`.
policy_verdict allows_tool_name(const policy& rules, std::string_view server,
                                std::string_view tool);

/// Does a pattern, by what it says of servers, name this one?
bool names_server(std::string_view pattern, std::string_view server);

/// Does a pattern name this tool?
bool names_tool(std::string_view pattern, std::string_view server, std::string_view tool);

/// Does `text` match `glob` (`*` any run of bytes, `?` one byte)? Case counts. No
/// recursion; at worst |glob| × |text| steps, whatever the number of stars.
bool glob_match(std::string_view glob, std::string_view text);

/// The policy in force, a line for each rule, for people; none where all is allowed.
std::vector<std::string> describe(const policy& rules);

/// The rights of one run: the requested servers that policy allows, and the tools within. The one
/// place where "may this run call that" is decided.
class run_rights {
public:
  run_rights() = default;
  /// `servers`: the raw names the run asked for, known to exist.
  run_rights(policy rules, std::vector<std::string> servers);

  /// From now on only what these rules allow, too.
  void narrow(policy rules);

  /// The servers this run may use, raw names, sorted.
  const std::vector<std::string>& servers() const { return servers_; }
  /// With the limits of all that narrows them.
  const policy& rules() const { return rules_; }

  policy_verdict server(std::string_view name) const;
  policy_verdict tool(std::string_view server, const tool_document& tool) const;
  /// See allows_tool_name.
  policy_verdict tool_name(std::string_view server, std::string_view tool) const;

private:
  template <class Ask>
  policy_verdict strictest(std::string_view server, Ask ask) const;

  policy rules_;
  std::vector<policy> bounds_; ///< each of which must allow it, too
  std::vector<std::string> servers_;
};

} // namespace bulkhead
