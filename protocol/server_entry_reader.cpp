#include "protocol/server_entry_reader.hpp"

#include <cmath>

#include <fmt/format.h>

#include "protocol/masked_arguments.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

namespace {

constexpr double longest_timeout_seconds = 86'400;

std::string with_article(std::string_view type) {
  return fmt::format("{} {}", type == "array" || type == "object" ? "an" : "a", type);
}

std::string type_of(const nlohmann::json& value) {
  return value.is_null() ? "null" : with_article(value.type_name());
}

std::string wrong_type(std::string_view what, std::string_view wanted,
                       const nlohmann::json& found) {
  return fmt::format("{} must be {}, but is {}", what, wanted, type_of(found));
}

} // namespace

const nlohmann::json* server_entry_reader::member(const char* key) const {
  auto found = entry_.find(key);
  return found != entry_.end() ? &*found : nullptr;
}

void server_entry_reader::refuse(std::string message) {
  if (failure_.empty()) {
    failure_ = std::move(message);
  }
}

expected<server_entry> server_entry_reader::read() {
  if (!entry_.is_object()) {
    return fail(errc::invalid_argument, wrong_type("an entry of mcpServers", "an object", entry_));
  }
  check_disabled();
  check_filters();
  server_entry result;
  result.transport = read_transport();
  if (result.transport == server_transport::stdio) {
    result.command = read_command();
    result.args = read_args();
    result.shown_args = mask_arguments(plain_args());
    result.env = read_env();
    add_env_file(result.env);
    add_handed_on(result.env);
    result.cwd = read_cwd();
  } else {
    read_address(result);
    result.headers = read_headers();
    result.oauth = read_oauth();
  }
  result.description = plain_text("description");
  read_timeout("startTimeout", result.start_timeout);
  read_timeout("callTimeout", result.call_timeout);
  result.roots = read_roots();
  read_most_calls(result.most_calls);
  if (!failure_.empty()) {
    return fail(errc::invalid_argument, failure_);
  }
  return result;
}

void server_entry_reader::check_disabled() {
  const auto* disabled = member("disabled");
  if (disabled != nullptr && !disabled->is_boolean()) {
    refuse(wrong_type("disabled", "true or false", *disabled));
  }
}

std::string server_entry_reader::plain_text(const char* key) {
  const auto* value = member(key);
  if (value == nullptr) {
    return {};
  }
  if (!value->is_string()) {
    refuse(wrong_type(key, "a string", *value));
    return {};
  }
  return value->get<std::string>();
}

std::string server_entry_reader::expanded(const std::string& what, const nlohmann::json& value) {
  if (!value.is_string()) {
    refuse(wrong_type(what, "a string", value));
    return {};
  }
  auto result = expand_variables(value.get_ref<const std::string&>(), environment_);
  if (!result) {
    refuse(fmt::format("{} {}", what, result.error().message));
    return {};
  }
  if (result->find('\0') != std::string::npos) {
    refuse(fmt::format("{} holds a NUL character, which no process can be given", what));
  }
  return std::move(*result);
}

std::string server_entry_reader::read_command() {
  const auto* command = member("command");
  if (command == nullptr) {
    refuse("has no command: it must be a string, the program to start");
    return {};
  }
  auto result = expand_home(expanded("command", *command), home_);
  if (result.empty()) {
    refuse("command is empty: it must name the program to start");
  }
  return result;
}

std::vector<std::string> server_entry_reader::read_args() {
  std::vector<std::string> result;
  const auto* args = member("args");
  if (args == nullptr) {
    return result;
  }
  if (!args->is_array()) {
    refuse(wrong_type("args", "an array of strings", *args));
    return result;
  }
  for (const auto& value : *args) {
    auto what = fmt::format("args[{}]", result.size());
    if (!value.is_string()) {
      refuse(fmt::format("args must be an array of strings, but {} is {}", what, type_of(value)));
      return result;
    }
    result.push_back(expanded(what, value));
  }
  return result;
}

std::vector<std::string> server_entry_reader::plain_args() const {
  std::vector<std::string> result;
  const auto* args = member("args");
  if (args != nullptr && args->is_array()) {
    for (const auto& value : *args) {
      result.push_back(value.is_string() ? value.get<std::string>() : std::string{});
    }
  }
  return result;
}

std::map<std::string, std::string> server_entry_reader::read_env() {
  std::map<std::string, std::string> result;
  const auto* env = member("env");
  if (env == nullptr) {
    return result;
  }
  if (!env->is_object()) {
    refuse(wrong_type("env", "an object of strings", *env));
    return result;
  }
  for (const auto& [name, value] : env->items()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      refuse("env has a name that is empty or holds \"=\" or a NUL character");
      return result;
    }
    result[name] = expanded("env." + name, value);
  }
  return result;
}

std::string server_entry_reader::read_cwd() {
  const auto* cwd = member("cwd");
  if (cwd == nullptr) {
    return {};
  }
  auto result = expand_home(expanded("cwd", *cwd), home_);
  if (failure_.empty() && !result.starts_with('/')) {
    refuse("cwd must be an absolute path, or one that starts with ~/");
  }
  return result;
}

void server_entry_reader::read_timeout(const char* key, std::chrono::milliseconds& target) {
  const auto* value = member(key);
  if (value == nullptr) {
    return;
  }
  if (!value->is_number()) {
    refuse(wrong_type(key, "a number of seconds", *value));
    return;
  }
  auto seconds = value->get<double>();
  if (!(seconds >= 0.1 && seconds <= longest_timeout_seconds)) {
    refuse(fmt::format("{} must be from 0.1 to 86400 seconds, but is {}", key, seconds));
    return;
  }
  target = std::chrono::milliseconds(std::llround(seconds * 1000));
}

} // namespace bulkhead
