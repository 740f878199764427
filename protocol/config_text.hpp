#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

#include "protocol/error.hpp"

namespace bulkhead {

/// How much of a configuration file is taken in.
struct config_text_limits {
  std::size_t bytes;
  std::size_t nodes = 100'000;
};

/// The readers below answer the file's outermost object. Their errors (malformed, too_large) tell
/// the line and column and never what stands there, which may be secret.

/// JSON in UTF-8, with comments and trailing commas, without duplicate keys.
expected<nlohmann::json> read_config_json(std::string_view text, const config_text_limits& limits);

/// TOML 1.0; dates and times become strings.
expected<nlohmann::json> read_config_toml(std::string_view text, const config_text_limits& limits);

/// The first document of YAML 1.2. Of the scalars without quotes `true`, `false` and `null` are
/// what they say, and all others, numbers too, are strings as they are written.
expected<nlohmann::json> read_config_yaml(std::string_view text, const config_text_limits& limits);

} // namespace bulkhead
