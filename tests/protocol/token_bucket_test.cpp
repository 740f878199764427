#include "protocol/token_bucket.hpp"

#include <gtest/gtest.h>

using namespace bulkhead;
using namespace std::chrono_literals;

namespace {

constexpr token_bucket::time_point start{};

TEST(token_bucket, a_burst_and_then_the_rate) {
  token_bucket bucket{2, 3, start};
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(bucket.take(start));
  }
  auto wait = bucket.take(start);
  ASSERT_TRUE(wait);
  EXPECT_DOUBLE_EQ(wait->count(), 0.5);
  EXPECT_TRUE(bucket.take(start + 499ms));
  EXPECT_FALSE(bucket.take(start + 500ms));
  EXPECT_TRUE(bucket.take(start + 501ms));
}

TEST(token_bucket, what_isn_t_used_adds_up_to_the_burst_alone) {
  token_bucket bucket{1, 2, start};
  auto later = start + 1h;
  EXPECT_FALSE(bucket.take(later));
  EXPECT_FALSE(bucket.take(later));
  EXPECT_TRUE(bucket.take(later));
}

TEST(token_bucket, a_change_keeps_what_was_used) {
  token_bucket bucket{1, 4, start};
  EXPECT_FALSE(bucket.take(start));
  EXPECT_FALSE(bucket.take(start));
  bucket.change(10, 1, start);
  EXPECT_FALSE(bucket.take(start));
  auto wait = bucket.take(start);
  ASSERT_TRUE(wait);
  EXPECT_DOUBLE_EQ(wait->count(), 0.1);
}

} // namespace
