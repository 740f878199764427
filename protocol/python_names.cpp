#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

// Python 3.14, `keyword.kwlist`. Soft keywords (match, case, type, _) are valid names.
constexpr std::array<std::string_view, 35> keywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/// FNV-1a, 64 bits: the same on every machine and in every version, which std::hash is not.
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

/// The identifier of `name` with as much of a suffix as `level` asks for.
std::string identifier_at(std::string_view name, int level) {
  auto plain = python_identifier(name);
  auto hash = stable_hash(name);
  switch (level) {
  case 0:
    return plain;
  case 1:
    return fmt::format("{}_{:06x}", plain, hash >> 40U);
  default:
    return fmt::format("{}_{:016x}", plain, hash);
  }
}

using alias_groups = std::map<std::string, std::vector<std::size_t>>;

alias_groups grouped(const std::vector<std::string>& aliases) {
  alias_groups groups;
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    groups[aliases[i]].push_back(i);
  }
  return groups;
}

/// Numbers what even the longest suffix leaves equal: the same name twice, or forged hashes.
void number_duplicates(std::vector<std::string>& aliases) {
  auto groups = grouped(aliases);
  for (const auto& [alias, members] : alias_groups(groups)) {
    for (std::size_t i = 1, number = 2; i < members.size(); ++i) {
      std::string numbered;
      do {
        numbered = fmt::format("{}_{}", alias, number++);
      } while (groups.contains(numbered));
      groups[numbered].push_back(members[i]);
      aliases[members[i]] = numbered;
    }
  }
}

} // namespace

std::string python_identifier(std::string_view name) {
  std::string result;
  result.reserve(name.size() + 1);
  for (char c : name) {
    result += is_name_character(c) ? c : '_';
  }
  if (result.empty() || is_digit(result.front())) {
    result.insert(result.begin(), '_');
  }
  bool dunder = result.starts_with("__") && result.ends_with("__");
  bool keyword = std::find(keywords.begin(), keywords.end(), result) != keywords.end();
  return dunder || keyword ? result + '_' : result;
}

std::vector<std::string> python_aliases(const std::vector<std::string>& names) {
  std::vector<int> levels(names.size(), 0);
  std::vector<std::string> aliases;
  aliases.reserve(names.size());
  for (const auto& name : names) {
    aliases.push_back(identifier_at(name, 0));
  }
  // A suffixed alias may meet a name that looks like it, so that levels rise until nothing clashes;
  // each round raises at least one name, and none has more than two levels to rise.
  for (bool raised = true; raised;) {
    raised = false;
    for (const auto& [alias, members] : grouped(aliases)) {
      if (members.size() == 1) {
        continue;
      }
      for (auto i : members) {
        if (levels[i] < 2) {
          aliases[i] = identifier_at(names[i], ++levels[i]);
          raised = true;
        }
      }
    }
  }
  number_duplicates(aliases);
  return aliases;
}

} // namespace bulkhead
