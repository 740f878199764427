#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// What is said about keys of a configuration object that nothing reads.
struct key_findings {
  /// Misspellings, ready to show: `unknown key "arg"; did you mean "args"?`
  std::vector<std::string> mistakes;
  /// One of them stands for what an entry must not be started without.
  bool vital = false;
  /// One sentence about all the others; empty when there are none.
  std::string remark;
};

/// How a top-level key is to be taken.
enum class top_key { read, policy_mistake, other };

/// Is `key` one that is read, one that was probably meant to restrict something and isn't
/// understood (a misspelled `policy`; `allow` or `deny` outside of it), or another?
top_key classify_top_key(std::string_view key);

/// Is it one that a policy may have, which has no meaning outside?
bool belongs_in_policy(std::string_view key);

/// Judges the top-level keys of a file that are `top_key::other`, those of well-known hosts left
/// out.
key_findings judge_top_keys(const std::vector<std::string>& keys);

/// Judges the keys of a server entry, those of well-known hosts left out.
key_findings judge_entry_keys(const std::vector<std::string>& keys);

/// Does this key of a server entry restrict its tools in some other program? Here it would have no
/// effect.
bool restricts_tools(std::string_view key);

/// A key or name as problems show it: short, and harmless to a terminal.
std::string shown_name(std::string_view name);

/// `; did you mean "x"?`, or nothing for an empty `likely`.
std::string did_you_mean(std::string_view likely);

} // namespace bulkhead
