#include "protocol/masked_arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "protocol/ascii.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view mask = "***";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_name_byte(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

bool speaks_of_a_secret(std::string_view name) {
  constexpr std::array<std::string_view, 12> words = {
      "key",        "token", "secret", "passw",  "passphrase", "pwd",
      "credential", "auth",  "bearer", "cookie", "signature",  "private"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains_ignoring_case(name, word); });
}

/// Tokens that say by their first letters what they are, and JSON web tokens.
bool looks_like_a_token(std::string_view text) {
  constexpr std::array<std::string_view, 14> starts = {
      "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-",  "sk_",
      "xox",  "AKIA", "AIza", "eyJ",         "hf_",    "npm_", "ntn_"};
  return text.size() >= 16 &&
         std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

/// `${VAR}` alone, which names a secret without telling it.
bool is_reference(std::string_view text) {
  return text.starts_with("${") && text.find('}') == text.size() - 1 &&
         text.find(":-") == std::string_view::npos;
}

/// The end of a value that starts at `from`: at what separates it from the next name.
std::size_t value_end(std::string_view text, std::size_t from, char separator) {
  // A header's value is the rest, blanks and all.
  auto end =
      separator == ':' ? text.find_first_of("\r\n", from) : text.find_first_of("&;, \n", from);
  return std::min(end, text.size());
}

/// Masks the values after `NAME=` and `NAME:` in a text.
std::string mask_named_values(std::string_view text) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    auto sign = text.find_first_of("=:", at);
    if (sign == std::string_view::npos) {
      break;
    }
    auto name = sign;
    while (name > at && is_name_byte(text[name - 1])) {
      --name;
    }
    bool url = text.substr(sign, 3) == "://";
    bool in_reference = text.substr(sign, 2) == ":-";
    auto from = sign + (in_reference ? 2 : 1);
    while (from < text.size() && text[from] == ' ') {
      ++from;
    }
    result += text.substr(at, from - at);
    at = from;
    if (url || name == sign || !speaks_of_a_secret(text.substr(name, sign - name))) {
      continue;
    }
    auto end = in_reference ? std::min(text.find('}', from), text.size())
                            : value_end(text, from, text[sign]);
    auto value = text.substr(from, end - from);
    result += value.empty() || is_reference(value) ? value : mask;
    at = end;
  }
  return result + std::string(text.substr(std::min(at, text.size())));
}

/// `scheme://user:password@host` without the password.
std::string mask_url_password(std::string text) {
  auto start = text.find("://");
  if (start == std::string::npos) {
    return text;
  }
  start += 3;
  auto at = text.find_last_of('@', text.find_first_of("/?# ", start));
  auto colon = text.find(':', start);
  if (at != std::string::npos && at > start && colon < at) {
    text.replace(colon + 1, at - colon - 1, mask);
  }
  return text;
}

/// The rest of `${NAME-default}` after its name, the default masked or, where it only stands for
/// the reference itself (see `expand_variables`), left out; what was dealt with is taken from
/// `rest`.
std::string mask_default(std::string_view name, std::string_view& rest) {
  for (const auto& itself : {fmt::format("-$${{{}}}}}", name), fmt::format("-${}}}", name)}) {
    if (rest.starts_with(itself)) {
      rest.remove_prefix(itself.size());
      return "}";
    }
  }
  auto end = rest.find('}');
  if (!rest.starts_with('-') || end == std::string_view::npos || end == 1 ||
      !speaks_of_a_secret(name)) {
    return {};
  }
  rest.remove_prefix(end);
  return fmt::format("-{}", mask);
}

std::string mask_defaults(std::string_view text) {
  std::string result;
  for (auto start = text.find("${"); start != std::string_view::npos; start = text.find("${")) {
    auto name_end = start + 2;
    while (name_end < text.size() && text[name_end] != '-' && text[name_end] != '.' &&
           is_name_byte(text[name_end])) {
      ++name_end;
    }
    auto name = text.substr(start + 2, name_end - start - 2);
    result.append(text.substr(0, name_end));
    text.remove_prefix(name_end);
    result.append(mask_default(name, text));
  }
  return result.append(text);
}

/// An option whose value is the next argument, as in `--token VALUE`.
bool announces_a_secret(std::string_view argument) {
  return argument.starts_with('-') && argument.find_first_of("=: ") == std::string_view::npos &&
         speaks_of_a_secret(argument);
}

} // namespace

std::vector<std::string> mask_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  bool announced = false;
  for (const auto& written : arguments) {
    auto argument = mask_defaults(written);
    bool secret = (announced && !argument.starts_with('-')) || looks_like_a_token(argument);
    announced = announces_a_secret(argument);
    if (secret && !is_reference(argument)) {
      result.emplace_back(mask);
    } else {
      result.push_back(mask_named_values(mask_url_password(argument)));
    }
  }
  return result;
}

} // namespace bulkhead
