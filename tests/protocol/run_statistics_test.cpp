#include "protocol/run_statistics.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

constexpr std::int64_t minute = 60'000;
constexpr std::int64_t start = 1'796'065'200'000; // a full minute

TEST(run_statistics, runs_are_counted_by_the_minute_in_which_they_ended) {
  run_statistics statistics;
  statistics.add(start + 1, "success", 10);
  statistics.add(start + minute - 1, "timeout", 10);
  statistics.add(start + minute, "success", 10);
  auto hour = statistics.last_hour(start + 2 * minute);
  ASSERT_EQ(hour.size(), 2u);
  EXPECT_EQ(hour[0].at, start);
  EXPECT_EQ(hour[0].counts, (std::map<std::string, std::uint64_t>{{"success", 1}, {"timeout", 1}}));
  EXPECT_EQ(hour[1].at, start + minute);
  EXPECT_EQ(hour[1].counts, (std::map<std::string, std::uint64_t>{{"success", 1}}));
}

TEST(run_statistics, quantiles_are_right_to_within_a_tenth) {
  run_statistics statistics;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    statistics.add(start, "success", i * 10);
  }
  auto hour = statistics.last_hour(start);
  ASSERT_EQ(hour.size(), 1u);
  EXPECT_NEAR(static_cast<double>(hour[0].median_ms), 500, 50);
  EXPECT_NEAR(static_cast<double>(hour[0].high_ms), 950, 95);
}

TEST(run_statistics, one_run_and_runs_of_no_and_of_endless_time_have_quantiles) {
  run_statistics statistics;
  statistics.add(start, "success", 0);
  EXPECT_EQ(statistics.last_hour(start)[0].median_ms, 0u);
  statistics.add(start + minute, "success", UINT64_MAX);
  EXPECT_GT(statistics.last_hour(start + minute)[1].median_ms, 86'400'000u);
}

TEST(run_statistics, only_an_hour_is_kept) {
  run_statistics statistics;
  statistics.add(start, "success", 1);
  EXPECT_EQ(statistics.last_hour(start + 59 * minute).size(), 1u);
  EXPECT_TRUE(statistics.last_hour(start + 60 * minute).empty());
  statistics.add(start + 60 * minute, "error", 1);
  auto hour = statistics.last_hour(start + 60 * minute);
  ASSERT_EQ(hour.size(), 1u);
  EXPECT_EQ(hour[0].counts, (std::map<std::string, std::uint64_t>{{"error", 1}}));
  // The clock was set back.
  statistics.add(start, "success", 1);
  EXPECT_EQ(statistics.last_hour(start + 60 * minute), hour);
  EXPECT_TRUE(statistics.last_hour(start).empty());
}

} // namespace
} // namespace bulkhead
