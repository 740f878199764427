#pragma once

#include <cstddef>

namespace bulkhead {

/// May one who has `own` of `total` places, of which all together have `taken`, have one more,
/// where nobody has more than `most`? Only while more are free than it has: so one alone gets half,
/// n get equal parts, and one part more is left for who is yet to come. (The threshold of Choudhury
/// and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998, with
/// alpha 1.)
constexpr bool fair_share(std::size_t own, std::size_t taken, std::size_t total, std::size_t most) {
  auto free = total > taken ? total - taken : 0;
  return own < most && own < free;
}

} // namespace bulkhead
