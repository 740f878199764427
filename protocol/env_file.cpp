#include "protocol/env_file.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace bulkhead {

namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

char unescaped(char c) {
  return c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
}

bool is_escape(char c) {
  return std::string_view{"nrt\"\\"}.find(c) != std::string_view::npos;
}

/// What stands between quotes of one kind; nothing if they aren't closed, or if more than a comment
/// follows.
std::optional<std::string> read_quoted(std::string_view text) {
  std::string result;
  char quote = text.front();
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == quote) {
      auto rest = trimmed(text.substr(at + 1));
      return rest.empty() || rest.starts_with('#') ? std::optional{result} : std::nullopt;
    }
    bool escape =
        quote == '"' && text[at] == '\\' && at + 1 < text.size() && is_escape(text[at + 1]);
    result += escape ? unescaped(text[++at]) : text[at];
  }
  return std::nullopt;
}

std::optional<std::string> read_value(std::string_view text) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    return read_quoted(text);
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#' && (at == 0 || blanks.find(text[at - 1]) != std::string_view::npos)) {
      text = text.substr(0, at);
    }
  }
  return std::string{trimmed(text)};
}

bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_of(" \t\"'#$") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

} // namespace

expected<std::map<std::string, std::string>> read_env_file(std::string_view text) {
  std::map<std::string, std::string> result;
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  for (int number = 1; !text.empty(); ++number) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (line.starts_with("export ")) {
      line = trimmed(line.substr(7));
    }
    auto sign = line.find('=');
    auto name = trimmed(line.substr(0, sign));
    auto value =
        sign == std::string_view::npos ? std::nullopt : read_value(trimmed(line.substr(sign + 1)));
    if (!is_name(name) || !value || value->find('\0') != std::string::npos) {
      return fail(errc::malformed, fmt::format("line {}: this is no NAME=VALUE", number));
    }
    result[std::string{name}] = std::move(*value);
  }
  return result;
}

} // namespace bulkhead
