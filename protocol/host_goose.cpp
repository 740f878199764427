#include <charconv>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/host_entry.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// Values that Goose keeps in its keyring or takes from the environment, by name.
void read_kept_values(host_entry& entry, const variable_context& variables) {
  for (const auto& name : texts_of(entry.take("env_keys"))) {
    if (!is_variable_name(name)) {
      entry.refuse("env_keys must be a list of variables' names");
      return;
    }
    entry.own_variable(name, fmt::format("${{{}}}", name));
    if (!variables.environment(name)) {
      entry.remark(fmt::format("Goose keeps the value of {0}, which can't be read here; set the "
                               "variable {0}",
                               name));
    }
  }
}

void read_goose_timeout(host_entry& entry) {
  const auto& value = entry.take("timeout");
  if (!value.is_string()) {
    return;
  }
  const auto& text = value.get_ref<const std::string&>();
  double seconds = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool number = failure == std::errc{} && end == text.data() + text.size();
  entry.set_timeout("timeout", number ? json(seconds) : value, "callTimeout", 1s);
}

void read_goose_entry(host_entry& entry, variable_context& variables) {
  entry.ignore({"name", "display_name", "bundled"});
  const auto& type = entry.take("type");
  if (type == json("stdio")) {
    entry.copy("cmd", "command");
    entry.copy("args");
    entry.copy("envs", "env");
    entry.copy("cwd");
    read_kept_values(entry, variables);
  } else if (type == json("streamable_http") || type == json("sse")) {
    entry.copy_address("uri", type == json("sse") ? "sse" : "http");
    entry.copy("headers");
    const auto& own = entry.take("envs");
    for (const auto& [name, value] : object_of(own).items()) {
      if (value.is_string()) {
        variables.own[name] = value.get<std::string>();
      }
    }
    for (const auto& name : texts_of(entry.take("env_keys"))) {
      variables.own[name] = std::nullopt;
    }
    if (entry.has("socket")) {
      entry.refuse("is reached by a socket, which isn't supported");
    }
  } else {
    entry.refuse("is a part of Goose itself, which only Goose can run");
  }
  entry.copy("description");
  entry.copy_switch("enabled", false);
  read_goose_timeout(entry);
  // An empty list stands for all of them.
  if (const auto& tools = member_of(entry.original(), "available_tools");
      tools.is_array() && tools.empty()) {
    entry.ignore({"available_tools"});
  } else {
    entry.copy_included("available_tools");
  }
}

} // namespace

void read_goose(host_reading& reading, const json& document) {
  const auto& extensions = member_of(document, "extensions");
  if (extensions.is_null()) {
    return;
  }
  if (!extensions.is_object()) {
    reading.report({}, "extensions must be a mapping with an entry for each of them");
    return;
  }
  for (const auto& [key, outer] : extensions.items()) {
    // Older files have all but `enabled` one level deeper.
    auto value = outer;
    if (const auto& inner = member_of(outer, "config"); inner.is_object()) {
      value = inner;
      value["enabled"] = outer.value("enabled", json(true));
    }
    if (!value.is_object()) {
      reading.report(shown_name(key), "an entry of extensions must be a mapping");
      continue;
    }
    const auto& given = member_of(value, "name");
    auto variables = reading.variables(variable_syntax::goose);
    host_entry entry{value};
    read_goose_entry(entry, variables);
    reading.add(given.is_string() && given != json("") ? given.get<std::string>() : key, entry,
                variables);
  }
}

} // namespace bulkhead
