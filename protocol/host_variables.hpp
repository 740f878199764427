#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// How a host writes variables in its texts, and what it does about one that isn't set.
enum class variable_syntax : std::uint8_t {
  none,   ///< it expands nothing
  claude, ///< `${VAR}`, `${VAR:-default}`; an unset one stays as it is written
  gemini, ///< the same, and `$VAR`
  editor, ///< `${env:VAR}`, `${userHome}`, `${workspaceFolder}` …; nothing stands for an unset one
  opencode, ///< `{env:VAR}`; nothing stands for an unset one
  goose,    ///< `$VAR` and `${VAR}` of the entry's own variables; others stay
};

struct variable_context {
  variable_syntax syntax = variable_syntax::none;
  std::string home;    ///< of whoever the file belongs to
  std::string project; ///< the project's folder; empty for a file that is the user's
  environment_lookup environment;
  /// goose: the variables that the entry itself has, without a value for those to be taken from the
  /// environment.
  std::map<std::string, std::optional<std::string>> own = {};
};

/// A host's text as this program's configuration would write it.
struct own_text {
  std::string text;
  /// What is worth telling of it: variables that aren't set, and what only looks like one.
  std::vector<std::string> remarks = {};
};

/// Translates a text into the syntax of `expand_variables`, so that expanding it gives what the
/// host would have made of it; variables stay variables. Errors, which never show a value:
/// invalid_argument for what can't be had here, such as `${input:id}`.
expected<own_text> to_own_syntax(std::string_view text, const variable_context& context);

} // namespace bulkhead
