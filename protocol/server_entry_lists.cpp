#include <algorithm>

#include <fmt/format.h>

#include "protocol/content_digest.hpp"
#include "protocol/env_file.hpp"
#include "protocol/resource_uri.hpp"
#include "protocol/server_entry_reader.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

/// An array of strings that aren't empty; empty where there is none.
std::vector<std::string> server_entry_reader::text_list(const char* key) {
  const auto* list = member(key);
  std::vector<std::string> result;
  if (list == nullptr) {
    return result;
  }
  if (!list->is_array()) {
    refuse(fmt::format("{} must be an array of strings", key));
    return result;
  }
  for (const auto& each : *list) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty()) {
      refuse(fmt::format("{} must be an array of strings, none of them empty", key));
      return result;
    }
    result.push_back(each.get<std::string>());
  }
  return result;
}

/// They are taken by whoever reads the policy.
void server_entry_reader::check_filters() {
  text_list("includeTools");
  text_list("excludeTools");
}

/// Folders and files as URIs (RFC 8089), which is how a server gets to know them.
std::vector<std::string> server_entry_reader::read_roots() {
  std::vector<std::string> result;
  for (const auto& each : text_list("roots")) {
    auto root = expand_home(expanded("roots", each), home_);
    if (root.starts_with("file:///")) {
      result.push_back(std::move(root));
    } else if (root.starts_with('/')) {
      result.push_back(file_uri(root));
    } else {
      refuse("roots must be absolute paths, paths that start with ~/, or file:// URIs");
    }
  }
  return result;
}

void server_entry_reader::read_most_calls(std::uint32_t& target) {
  constexpr std::uint64_t most = 1'000;
  const auto* value = member("maxConcurrentCalls");
  if (value == nullptr) {
    return;
  }
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
      value->get<std::uint64_t>() > most) {
    refuse(fmt::format("maxConcurrentCalls must be a whole number from 1 to {}", most));
    return;
  }
  target = value->get<std::uint32_t>();
}

void server_entry_reader::add_handed_on(std::map<std::string, std::string>& target) {
  for (const auto& name : text_list("envVars")) {
    if (!is_variable_name(name)) {
      refuse("envVars must be an array of names of variables");
      return;
    }
    if (auto value = environment_(name)) {
      target.emplace(name, std::move(*value));
    }
  }
}

/// What `env` says itself counts more.
void server_entry_reader::add_env_file(std::map<std::string, std::string>& target) {
  const auto* named = member("envFile");
  if (named == nullptr) {
    return;
  }
  auto path = expand_home(expanded("envFile", *named), home_);
  auto digest = plain_text("envFileSha256");
  if (!failure_.empty()) {
    return;
  }
  if (!path.starts_with('/')) {
    refuse("envFile must be an absolute path, or one that starts with ~/");
    return;
  }
  auto text =
      files_ ? files_(path, !digest.empty()) : fail(errc::unavailable, "files aren't read here");
  if (!text) {
    refuse(fmt::format("envFile \"{}\" {}", path, text.error().message));
    return;
  }
  if (!digest.empty() && content_digest(*text) != digest) {
    refuse(fmt::format("envFile \"{}\" has changed since it was approved; look at it, and import "
                       "the project's servers again",
                       path));
    return;
  }
  auto variables = read_env_file(*text);
  if (!variables) {
    refuse(fmt::format("envFile \"{}\": {}", path, variables.error().message));
    return;
  }
  target.merge(*variables);
}

} // namespace bulkhead
