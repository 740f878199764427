#include "protocol/fair_share.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

constexpr std::size_t total = 64;

/// What so many who want as much as they can get have, once none gets any more.
std::vector<std::size_t> filled(std::size_t greedy, std::size_t most) {
  std::vector<std::size_t> own(greedy, 0);
  for (bool more = true; more;) {
    more = false;
    for (auto& each : own) {
      auto taken = std::accumulate(own.begin(), own.end(), std::size_t{0});
      if (fair_share(each, taken, total, most)) {
        ++each;
        more = true;
      }
    }
  }
  return own;
}

TEST(fair_share, nobody_has_more_than_the_most) {
  EXPECT_EQ(filled(1, 8), std::vector<std::size_t>{8});
  EXPECT_EQ(filled(1, 100), std::vector<std::size_t>{total / 2});
}

TEST(fair_share, however_many_take_what_they_can_some_are_left_for_another) {
  for (std::size_t greedy = 1; greedy < total; ++greedy) {
    auto own = filled(greedy, 8);
    auto taken = std::accumulate(own.begin(), own.end(), std::size_t{0});
    EXPECT_LT(taken, total) << greedy;
    EXPECT_TRUE(fair_share(0, taken, total, 8)) << greedy;
    auto [least, most] = std::minmax_element(own.begin(), own.end());
    EXPECT_LE(*most - *least, 1U) << greedy;
  }
}

} // namespace
} // namespace bulkhead
