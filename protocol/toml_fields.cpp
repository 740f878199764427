#include "protocol/toml_fields.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "protocol/config_keys.hpp"
#include "protocol/edit_distance.hpp"

namespace bulkhead {

const toml::node* toml_fields::take(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

const toml::table* toml_fields::take_table(std::string_view key) {
  const auto* node = take(key);
  if (node == nullptr) {
    return nullptr;
  }
  if (!node->is_table()) {
    refuse(
        key, *node,
        fmt::format(" must be a table: write [{}] on a line, and its keys below it", path_of(key)));
  }
  return node->as_table();
}

void toml_fields::finish() {
  for (const auto& [key, node] : table_) {
    auto name = key.str();
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) {
      continue;
    }
    auto likely = closest_name(name, known_);
    findings_.refuse(key.source(),
                     fmt::format("nothing reads the key {}{}", path_of(shown_name(name)),
                                 likely.empty()
                                     ? fmt::format("; expected {}", fmt::join(known_, ", "))
                                     : did_you_mean(likely)));
  }
}

std::string toml_fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string{key} : fmt::format("{}.{}", path_, key);
}

std::optional<std::string> toml_fields::scalar(std::string_view key, const toml::node& node,
                                               std::string_view expectation) {
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* number = node.as_integer()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* truth = node.as_boolean()) {
    return truth->get() ? "true" : "false";
  }
  refuse(key, node, fmt::format(" has a value of the wrong kind: expected {}", expectation));
  return std::nullopt;
}

std::string toml_fields::quoted(const toml::node& node, std::string_view text) {
  return node.is_string() ? fmt::format("\"{}\"", shown_value(text)) : shown_value(text);
}

expected<toml::table> parse_toml(std::string_view text, const std::string& file, std::size_t most) {
  if (text.size() > most) {
    return fail(errc::too_large, fmt::format("{}: it has {} bytes, more than the {} allowed", file,
                                             text.size(), most));
  }
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& failure) {
    // Its own words may quote what stands there.
    bool twice = failure.description().find("redefine") != std::string_view::npos;
    const auto& where = failure.source().begin;
    return fail(errc::malformed,
                fmt::format("{}:{}: {} (column {})", file, where.line,
                            twice ? "this key or table is there twice; remove one, or put both "
                                    "together"
                                  : "this is no valid TOML",
                            where.column));
  }
}

} // namespace bulkhead
