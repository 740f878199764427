#include "protocol/call_limits.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using namespace std::chrono_literals;

struct counted : ::testing::Test {
  std::optional<std::string> take(call_counts& run, const char* tool,
                                  const std::string& owner = "local") {
    return run.take(rules, rates, owner, "s", tool, now);
  }

  policy rules;
  call_rates rates;
  call_rates::clock::time_point now = call_rates::clock::time_point{} + 1h;
};

TEST_F(counted, nothing_is_limited_by_default) {
  call_counts run;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(take(run, "t"));
  }
}

TEST_F(counted, calls_of_a_run) {
  rules.calls_per_run = {{5, "/a.json", ""}, {2, "/b.json", ""}};
  call_counts run;
  EXPECT_FALSE(take(run, "t"));
  EXPECT_FALSE(take(run, "u"));
  EXPECT_EQ(take(run, "t"), "policy allows 2 calls a run (\"callsPerRun\" in /b.json)");
  EXPECT_TRUE(take(run, "t"));
  call_counts other;
  EXPECT_FALSE(take(other, "t"));
}

TEST_F(counted, calls_of_the_tools_that_a_pattern_names) {
  rules.calls_per_tool = {{2, "/a.json", "s/delete_*"}, {1, "/a.json", "s/delete_all"}};
  call_counts run;
  EXPECT_FALSE(take(run, "delete_all"));
  EXPECT_EQ(take(run, "delete_all"),
            "policy allows 1 call of \"s/delete_all\" a run (\"perTool\" in /a.json)");
  EXPECT_FALSE(take(run, "delete_one"));
  EXPECT_TRUE(take(run, "delete_two")) << "together, or names would be a way around it";
  EXPECT_FALSE(take(run, "read"));
}

TEST_F(counted, calls_of_a_minute_whatever_the_run) {
  rules.calls_per_minute = {{2, "", ""}};
  call_counts one;
  call_counts two;
  EXPECT_FALSE(take(one, "t"));
  now += 30s;
  EXPECT_FALSE(take(two, "t"));
  EXPECT_EQ(take(two, "t"), "policy allows 2 calls a minute (\"callsPerMinute\")");
  EXPECT_FALSE(take(two, "t", "another owner"));
  now += 29s;
  EXPECT_TRUE(take(one, "t"));
  now += 1s;
  EXPECT_FALSE(take(one, "t"));
  EXPECT_TRUE(take(one, "t"));
}

TEST_F(counted, a_refused_call_counts_nowhere) {
  rules.calls_per_minute = {{1, "", ""}};
  rules.calls_per_run = {{2, "", ""}};
  call_counts run;
  EXPECT_FALSE(take(run, "t"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(take(run, "t"));
  }
  now += 60s;
  EXPECT_FALSE(take(run, "t"));
}

TEST_F(counted, none_at_all) {
  rules.calls_per_run = {{0, "", ""}};
  call_counts run;
  EXPECT_EQ(take(run, "t"), "policy allows 0 calls a run (\"callsPerRun\")");
}

} // namespace
} // namespace bulkhead
