#include <algorithm>

#include <fmt/format.h>

#include "protocol/content_digest.hpp"
#include "protocol/env_file.hpp"
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
