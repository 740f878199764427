#include "protocol/edit_distance.hpp"

#include <algorithm>
#include <numeric>

namespace bulkhead {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  const auto beyond = most + 1;
  if (a.size() > b.size() + most || b.size() > a.size() + most) {
    return beyond;
  }
  // Row by row of the table, of which only the last row is kept.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto first = i > most ? i - most : 0;
    auto last = std::min(b.size(), i + most + 1);
    auto diagonal = row[first];
    row[first] = first == 0 ? i + 1 : beyond;
    auto least = row[first];
    for (auto j = first; j < last; ++j) {
      auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      auto above = j + 1 > i + most ? beyond : row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, above + 1});
      least = std::min(least, row[j + 1]);
    }
    if (least > most) {
      return beyond;
    }
  }
  return std::min(row[b.size()], beyond);
}

std::string_view closest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (auto candidate : candidates) {
    if (auto distance = edit_distance(name, candidate, least - 1); distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

} // namespace bulkhead
