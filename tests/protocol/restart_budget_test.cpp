#include "protocol/restart_budget.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using namespace std::chrono_literals;

const auto start = restart_budget::clock::time_point{} + 1h;

TEST(restart_budget, the_first_start_is_free) {
  restart_budget budget;
  EXPECT_FALSE(budget.used_up(start));
  EXPECT_LE(budget.next_start(), start);
}

TEST(restart_budget, pauses_double_up_to_half_a_minute) {
  restart_budget budget;
  auto now = start;
  for (auto pause :
       {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    now += 1h;
    budget.failed(now, 0s);
    EXPECT_EQ(budget.next_start() - now, pause);
  }
  budget.failed(now + 1h, 31s);
  EXPECT_EQ(budget.next_start(), now + 1h + 100ms) << "a good run starts afresh";
}

TEST(restart_budget, five_restarts_in_ten_minutes) {
  restart_budget budget;
  for (int i = 0; i < 5; ++i) {
    budget.failed(start + i * 1min, 0s);
    EXPECT_FALSE(budget.used_up(start + i * 1min));
  }
  budget.failed(start + 5min, 0s);
  EXPECT_TRUE(budget.used_up(start + 5min));
  EXPECT_TRUE(budget.used_up(start + 10min - 1ms));
  EXPECT_FALSE(budget.used_up(start + 10min));
  budget.failed(start + 10min, 0s);
  EXPECT_EQ(budget.window_end(), start + 11min) << "one more restart leaves the window at a time";
}

} // namespace
} // namespace bulkhead
