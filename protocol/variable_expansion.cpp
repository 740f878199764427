#include "protocol/variable_expansion.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead {

namespace {

/// The end of what begins with `${` at `start`: its `}`, those of literal `$${…}` in it left out.
std::size_t reference_end(std::string_view text, std::size_t start) {
  int literals = 0;
  for (auto at = start + 2; at < text.size(); ++at) {
    if (text.substr(at).starts_with("$${")) {
      ++literals;
      at += 2;
    } else if (text[at] == '}' && literals-- == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

/// The default of a variable, literal `${` in it freed of their escapes.
expected<std::string> read_default(std::string_view name, std::string_view text) {
  std::string result;
  for (auto start = text.find("${"); start != std::string_view::npos; start = text.find("${")) {
    if (start == 0 || text[start - 1] != '$') {
      return fail(
          errc::invalid_argument,
          fmt::format("has a default for {} that holds another ${{…}}: nesting isn't supported",
                      name));
    }
    result.append(text.substr(0, start - 1)).append("${");
    text.remove_prefix(start + 2);
  }
  return result.append(text);
}

/// The value of what stands between the braces.
expected<std::string> resolve(std::string_view inside, const environment_lookup& environment) {
  if (inside.starts_with("env:")) {
    inside.remove_prefix(4);
  }
  auto separator = inside.find('-');
  bool for_empty =
      separator != std::string_view::npos && separator > 0 && inside[separator - 1] == ':';
  auto name = inside.substr(0, for_empty ? separator - 1 : separator);
  if (!is_variable_name(name)) {
    return fail(errc::invalid_argument, "has a ${…} that isn't understood: use ${NAME} or "
                                        "${NAME:-default}, and $${ for a literal ${");
  }
  auto value = environment(name);
  if (separator == std::string_view::npos) {
    if (!value) {
      return fail(errc::not_found,
                  fmt::format("needs the environment variable {0}, which isn't set: "
                              "set it or write ${{{0}:-default}}",
                              name));
    }
    return std::move(*value);
  }
  auto fallback = read_default(name, inside.substr(separator + 1));
  bool has_value = value && !(for_empty && value->empty());
  return fallback && has_value ? expected<std::string>{std::move(*value)} : fallback;
}

} // namespace

bool is_variable_name(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto valid = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), valid);
}

expected<std::string> expand_variables(std::string_view text,
                                       const environment_lookup& environment) {
  std::string result;
  for (;;) {
    auto start = text.find("${");
    if (start == std::string_view::npos) {
      return result.append(text);
    }
    if (start > 0 && text[start - 1] == '$') {
      result.append(text.substr(0, start - 1)).append("${");
      text.remove_prefix(start + 2);
      continue;
    }
    auto end = reference_end(text, start);
    if (end == std::string_view::npos) {
      return fail(errc::invalid_argument, "has a ${ without its }: write $${ for a literal ${");
    }
    auto value = resolve(text.substr(start + 2, end - start - 2), environment);
    if (!value) {
      return value;
    }
    result.append(text.substr(0, start)).append(*value);
    text.remove_prefix(end + 1);
  }
}

std::string expand_home(std::string_view path, std::string_view home) {
  if (path == "~" || path.starts_with("~/")) {
    return std::string(home) + std::string(path.substr(1));
  }
  return std::string(path);
}

} // namespace bulkhead
