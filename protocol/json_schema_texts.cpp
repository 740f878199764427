// URIs and patterns as schemas write them.

#include <algorithm>
#include <vector>

#include "protocol/json_schema_parts.hpp"

namespace bulkhead {

namespace {

/// What one pattern may take of memory, compiled and matching, in bytes.
constexpr std::int64_t pattern_memory = 1 << 20;
constexpr std::size_t longest_pattern = 4096;

struct uri_parts {
  std::string_view scheme;    ///< with its colon
  std::string_view authority; ///< with its slashes
  std::string_view path;
  std::string_view rest; ///< query and fragment
};

uri_parts split_uri(std::string_view uri) {
  uri_parts result;
  auto end = std::min(uri.find_first_of("?#"), uri.size());
  result.rest = uri.substr(end);
  uri = uri.substr(0, end);
  auto colon = uri.find(':');
  if (colon != std::string_view::npos && uri.find('/') > colon) {
    result.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    auto slash = std::min(uri.find('/', 2), uri.size());
    result.authority = uri.substr(0, slash);
    uri.remove_prefix(slash);
  }
  result.path = uri;
  return result;
}

/// RFC 3986, 5.2.4.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  for (std::size_t begin = 0; begin <= path.size();) {
    auto end = std::min(path.find('/', begin), path.size());
    auto segment = path.substr(begin, end - begin);
    bool last = end == path.size();
    if (segment == ".." && !kept.empty() && !kept.back().empty()) {
      kept.pop_back();
    }
    if (segment != "." && segment != "..") {
      kept.push_back(segment);
    } else if (last) {
      kept.emplace_back();
    }
    begin = end + 1;
  }
  std::string result;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    result += (i > 0 ? "/" : "");
    result += kept[i];
  }
  return result;
}

std::string merged_path(const uri_parts& base, std::string_view path) {
  if (base.path.empty()) {
    return (base.authority.empty() ? "" : "/") + std::string{path};
  }
  auto slash = base.path.rfind('/');
  auto folder = slash == std::string_view::npos ? 0 : slash + 1;
  return std::string{base.path.substr(0, folder)} + std::string{path};
}

} // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  auto from = split_uri(base);
  auto to = split_uri(reference);
  if (!to.scheme.empty()) {
    return std::string{reference};
  }
  std::string result{from.scheme};
  if (!to.authority.empty()) {
    return result + std::string{reference};
  }
  result += from.authority;
  if (to.path.empty()) {
    result += from.path;
    auto query = from.rest.substr(0, from.rest.find('#'));
    return result + std::string{to.rest.starts_with('?') ? std::string_view{} : query} +
           std::string{to.rest};
  }
  auto path = to.path.starts_with('/') ? std::string{to.path} : merged_path(from, to.path);
  return result + without_dots(path) + std::string{to.rest};
}

std::unique_ptr<RE2> compile_pattern(std::string_view pattern) {
  if (pattern.size() > longest_pattern) {
    return nullptr;
  }
  std::string spelled;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    bool escape = pattern[i] == '\\' && i + 1 < pattern.size();
    auto hex = pattern.substr(std::min(i + 2, pattern.size()), 4);
    if (escape && pattern[i + 1] == 'u' && hex.size() == 4 &&
        hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos) {
      spelled += "\\x{" + std::string{hex} + "}";
      i += 5;
    } else if (escape) {
      spelled += pattern.substr(i++, 2);
    } else {
      spelled += pattern[i];
    }
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(pattern_memory);
  auto compiled = std::make_unique<RE2>(spelled, options);
  return compiled->ok() ? std::move(compiled) : nullptr;
}

} // namespace bulkhead
