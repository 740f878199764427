#include "protocol/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bulkhead {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Row by row of the table, of which only the last row is kept.
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < right.size(); ++j) {
      auto changed = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

std::string_view closest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (auto candidate : candidates) {
    if (auto distance = edit_distance(name, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

} // namespace bulkhead
