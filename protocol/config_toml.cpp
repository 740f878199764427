#include <sstream>
#include <string>

#include <fmt/format.h>

#include "protocol/config_text.hpp"
#include "protocol/toml_library.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

json as_json(const toml::node& node);

json table_as_json(const toml::table& table) {
  auto result = json::object();
  for (const auto& [key, value] : table) {
    result[std::string{key.str()}] = as_json(value);
  }
  return result;
}

/// The parser bounds the depth.
json as_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    return table_as_json(*table);
  }
  if (const auto* array = node.as_array()) {
    auto result = json::array();
    for (const auto& element : *array) {
      result.push_back(as_json(element));
    }
    return result;
  }
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* number = node.as_integer()) {
    return number->get();
  }
  if (const auto* number = node.as_floating_point()) {
    return number->get();
  }
  if (const auto* truth = node.as_boolean()) {
    return truth->get();
  }
  std::ostringstream written;
  if (const auto* date = node.as_date()) {
    written << *date;
  } else if (const auto* time = node.as_time()) {
    written << *time;
  } else if (const auto* moment = node.as_date_time()) {
    written << *moment;
  }
  return written.str();
}

} // namespace

expected<json> read_config_toml(std::string_view text, const config_text_limits& limits) {
  if (text.size() > limits.bytes) {
    return fail(errc::too_large,
                fmt::format("has {} bytes, more than the {} allowed", text.size(), limits.bytes));
  }
  try {
    return table_as_json(toml::parse(text));
  } catch (const toml::parse_error& failure) {
    // Its own words quote what stands there.
    return fail(errc::malformed,
                fmt::format("line {}, column {}: this is no valid TOML",
                            failure.source().begin.line, failure.source().begin.column));
  }
}

} // namespace bulkhead
