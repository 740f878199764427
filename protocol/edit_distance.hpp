#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace bulkhead {

/// Levenshtein distance in bytes: how many insertions, removals and replacements lead from one to
/// the other; `most` + 1 if it is over `most`. Only cells whose distance can be within are looked
/// at (Ukkonen, 1985), so it takes |a| × `most` steps.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

/// The one of `candidates` that `name` is likely a misspelling of: up to a third of it may differ.
/// Empty when none is close.
std::string_view closest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates);

} // namespace bulkhead
