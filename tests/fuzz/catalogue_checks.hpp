#pragma once

#include "protocol/server_config.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

/// The variables that configurations can expand here.
inline std::optional<std::string> look_up(std::string_view name) {
  if (name == "TOKEN") {
    return "s3cret-value";
  }
  return name == "DIR" ? std::optional<std::string>{"/opt/tools"} : std::nullopt;
}

/// What every catalogue promises, whatever the files say that it comes from.
void check_catalogue(const server_catalogue& catalogue);

} // namespace bulkhead::fuzz
