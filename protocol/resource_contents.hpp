#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/artifact.hpp"

namespace bulkhead {

/// The items of a ReadResourceResult's `contents`, JSON texts separated by a comma: see
/// `resource_part_result`.
std::string part_contents(std::string_view uri, std::uint64_t offset, resource_part part);

} // namespace bulkhead
