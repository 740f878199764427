#include "protocol/host_entry.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

const json nothing;
const json empty_object = json::object();

/// What our own format takes for a timeout, in seconds.
constexpr double shortest_timeout = 0.1;
constexpr double longest_timeout = 86'400;

bool is_empty(const json& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

std::string joined(std::string_view folder, std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  return path.empty() || path == "." ? std::string{folder} : fmt::format("{}/{}", folder, path);
}

/// Is it a path that means something wherever the program was started?
bool is_anchored(std::string_view path) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/") || path.starts_with("${");
}

} // namespace

const json& member_of(const json& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nothing;
}

const json& object_of(const json& value) {
  return value.is_object() ? value : empty_object;
}

std::vector<std::string> texts_of(const json& array) {
  std::vector<std::string> result;
  if (array.is_array()) {
    for (const auto& each : array) {
      if (each.is_string()) {
        result.push_back(each.get<std::string>());
      }
    }
  }
  return result;
}

const json& host_entry::take(const char* key) {
  taken_.insert(key);
  return member_of(entry_, key);
}

void host_entry::ignore(std::initializer_list<const char*> keys) {
  taken_.insert(keys.begin(), keys.end());
}

void host_entry::copy(const char* key, const char* own_key) {
  if (const auto& value = take(key); !value.is_null()) {
    own_[own_key] = value;
  }
}

void host_entry::copy_process() {
  copy("command");
  copy("args");
  copy("env");
}

void host_entry::copy_address(const char* key, const char* type) {
  if (const auto& value = take(key); !value.is_null()) {
    own_["url"] = value;
    own_["type"] = type;
  }
}

void host_entry::copy_timeout(const char* key, const char* own_key,
                              std::chrono::milliseconds unit) {
  set_timeout(key, take(key), own_key, unit);
}

void host_entry::set_timeout(const char* what, const json& value, const char* own_key,
                             std::chrono::milliseconds unit) {
  if (value.is_null()) {
    return;
  }
  if (!value.is_number()) {
    remark(fmt::format("{} is no number, so the usual timeout is taken", what));
    return;
  }
  auto seconds = value.get<double>() * static_cast<double>(unit.count()) / 1000;
  auto within = std::clamp(std::isnan(seconds) ? longest_timeout : seconds, shortest_timeout,
                           longest_timeout);
  if (within != seconds) {
    remark(fmt::format("{} becomes {} s, since timeouts go from {} to {} s", what, within,
                       shortest_timeout, longest_timeout));
  }
  own_[own_key] = within;
}

void host_entry::own_variable(const std::string& name, std::string text) {
  translated_["env"][name] = std::move(text);
}

void host_entry::own_header(const std::string& name, std::string text) {
  translated_["headers"][name] = std::move(text);
}

/// A filter that isn't understood must not be lost.
void host_entry::copy_names(const char* key, const char* own_key) {
  const auto& value = take(key);
  if (value.is_null()) {
    return;
  }
  if (!value.is_array() || texts_of(value).size() != value.size()) {
    refuse(fmt::format("{} must be an array of tools' names", key));
    return;
  }
  for (const auto& name : texts_of(value)) {
    if (name.empty() || name.find_first_of("*?") != std::string::npos) {
      refuse(fmt::format("{} has \"{}\", which is no tool's name", key, shown_name(name)));
      return;
    }
  }
  own_[own_key] = value;
}

void host_entry::copy_included(const char* key) {
  copy_names(key, "includeTools");
}

void host_entry::copy_excluded(const char* key) {
  auto earlier = texts_of(member_of(own_, "excludeTools"));
  copy_names(key, "excludeTools");
  for (auto& pattern : earlier) {
    exclude_tool(std::move(pattern));
  }
}

void host_entry::exclude_tool(std::string pattern) {
  own_["excludeTools"].push_back(std::move(pattern));
}

void host_entry::copy_switch(const char* key, bool off_value) {
  const auto& value = take(key);
  if (!value.is_null() && !value.is_boolean()) {
    refuse(fmt::format("{} must be true or false", key));
  } else if (value == json(off_value)) {
    disable();
  }
}

void host_entry::refuse(std::string why) {
  if (refusal_.empty()) {
    refusal_ = std::move(why);
  }
}

void host_entry::remark_oauth(const char* key) {
  if (const auto& value = take(key); !is_empty(value) && value != json(false)) {
    remark(fmt::format("{} isn't taken over; \"bulkhead login\" signs in", key));
  }
}

void host_entry::judge_the_rest() {
  std::vector<std::string> strange;
  for (const auto& [key, value] : entry_.items()) {
    if (taken_.contains(key)) {
      continue;
    }
    if (restricts_tools(key) && !is_empty(value)) {
      refuse(fmt::format("has \"{}\", which may restrict its tools in a way that isn't understood "
                         "here; take it out, or define the server anew with a policy",
                         shown_name(key)));
    }
    strange.push_back(fmt::format("\"{}\"", shown_name(key)));
  }
  if (!strange.empty()) {
    remark(fmt::format("nothing here reads {}", fmt::join(strange, ", ")));
  }
}

void host_entry::translate(const std::string& what, json& value,
                           const variable_context& variables) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      translate(fmt::format("{}[{}]", what, i), value[i], variables);
    }
  } else if (value.is_object()) {
    for (auto& [key, each] : value.items()) {
      translate(fmt::format("{}.{}", what, shown_name(key)), each, variables);
    }
  } else if (value.is_string()) {
    auto text = to_own_syntax(value.get_ref<const std::string&>(), variables);
    if (!text) {
      refuse(fmt::format("{} {}", what, text.error().message));
      return;
    }
    for (const auto& each : text->remarks) {
      remark(fmt::format("{}: {}", what, each));
    }
    value = std::move(text->text);
  }
}

/// A server of a project starts in the project's folder, and paths lead from there.
void host_entry::settle_folder(const variable_context& variables, host_scope scope) {
  for (const char* key : {"cwd", "envFile"}) {
    auto found = own_.find(key);
    if (found == own_.end() || !found->is_string() ||
        is_anchored(found->get_ref<const std::string&>())) {
      continue;
    }
    if (scope == host_scope::user) {
      refuse(fmt::format("{} is relative to wherever the host runs; write the whole path", key));
    } else {
      *found = joined(variables.project, found->get<std::string>());
    }
  }
  if (scope != host_scope::user && own_.contains("command") && !own_.contains("cwd")) {
    own_["cwd"] = variables.project;
  }
}

bool host_entry::finish(const variable_context& variables, host_scope scope) {
  judge_the_rest();
  if (!own_.contains("command") && !own_.contains("url")) {
    refuse("has neither a command to start nor an address to connect to");
  }
  for (const char* key : {"command", "args", "env", "cwd", "envFile", "url", "headers"}) {
    if (auto found = own_.find(key); found != own_.end()) {
      translate(key, *found, variables);
    }
  }
  settle_folder(variables, scope);
  for (const auto& [key, texts] : translated_.items()) {
    if (own_.contains(key) && !own_[key].is_object()) {
      continue; // for the reader of our own format to refuse
    }
    own_[key].update(texts);
  }
  return refusal_.empty();
}

void host_reading::read_servers(const char* what, const json& servers, variable_syntax syntax,
                                const std::function<void(host_entry&)>& read_one) {
  if (servers.is_null()) {
    return;
  }
  if (!servers.is_object()) {
    report({}, fmt::format("{} must be an object with an entry for each server", what));
    return;
  }
  for (const auto& [name, value] : servers.items()) {
    if (!value.is_object()) {
      report(shown_name(name), fmt::format("an entry of {} must be an object", what));
      continue;
    }
    host_entry entry{value};
    read_one(entry);
    add(name, entry, variables(syntax));
  }
}

void host_reading::add(const std::string& name, host_entry& entry,
                       const variable_context& variables) {
  bool taken = entry.finish(variables, file->scope);
  for (const auto& each : entry.remarks()) {
    report(shown_name(name), each, problem_kind::remark);
  }
  // What a later file defines takes the place of an earlier one's, also when it can't be had here.
  result.servers.erase(name);
  result.sources[name] = file->path;
  if (taken) {
    result.servers[name] = entry.own();
  } else {
    report(shown_name(name), fmt::format("isn't taken over: {}", entry.refusal()));
  }
}

} // namespace bulkhead
