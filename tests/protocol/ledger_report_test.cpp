#include "protocol/ledger_report.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

constexpr std::int64_t now = 1'796'065'510'123; // 2026-11-30T19:05:10.123Z

TEST(ledger_report, times) {
  EXPECT_EQ(time_text(now), "2026-11-30T19:05:10.123Z");
  EXPECT_EQ(parse_since("90s", now), now - 90'000);
  EXPECT_EQ(parse_since("2h", now), now - 7'200'000);
  EXPECT_EQ(parse_since("7d", now), now - 7 * 86'400'000LL);
  EXPECT_EQ(parse_since("0m", now), now);
  EXPECT_EQ(time_text(*parse_since("2026-11-30", now)), "2026-11-30T00:00:00.000Z");
  EXPECT_EQ(time_text(*parse_since("2026-02-28T23:59", now)), "2026-02-28T23:59:00.000Z");
  EXPECT_EQ(time_text(*parse_since("2026-02-28T23:59:58Z", now)), "2026-02-28T23:59:58.000Z");
  for (const auto* text :
       {"", "h", "2", "2x", "-2h", "2 h", "2026", "2026-13-01", "2026-02-30", "2026-02-28T25:00",
        "2026-02-28T23:59:58+01", "yesterday", "99999999999h", "2026-02-28 "}) {
    auto read = parse_since(text, now);
    ASSERT_FALSE(read) << text << " " << *read;
    EXPECT_EQ(read.error().code, errc::invalid_argument);
  }
}

ledger_call hostile_call() {
  ledger_call call;
  call.run = "abcdef0123456789abcdef0123456789";
  call.at = now;
  call.server = "=cmd|' /C calc'!A0";
  call.tool = "x\x1b]0;owned\x07\n\"y\",\t\u202ez";
  call.arguments = {"aa", 7, std::nullopt};
  call.outcome = "denied";
  call.rule = "deny rule \"a,b\"";
  return call;
}

TEST(ledger_report, a_line_of_text_is_one_line_and_harmless) {
  auto text = to_text(hostile_call(), ledger_format::text);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  for (const auto* bad : {"\x1b", "\x07", "\t", "\u202e"}) {
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
  EXPECT_NE(text.find("abcdef012345 "), std::string::npos) << text;
  EXPECT_NE(text.find("denied"), std::string::npos);
}

TEST(ledger_report, json_keeps_what_it_says) {
  auto text = to_text(hostile_call(), ledger_format::json);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  auto value = json::parse(text);
  EXPECT_EQ(value["tool"], hostile_call().tool);
  EXPECT_EQ(value["arguments"], nullptr);
  EXPECT_EQ(value["argumentsBytes"], 7);
  ledger_run run;
  run.servers = {"a", "b"};
  run.code = {"cc", 3, "1+1"};
  value = json::parse(to_text(run, ledger_format::json));
  EXPECT_EQ(value["servers"], (json{"a", "b"}));
  EXPECT_EQ(value["code"], "1+1");
}

TEST(ledger_report, csv_is_quoted_and_no_formula) {
  auto text = to_text(hostile_call(), ledger_format::csv);
  EXPECT_NE(text.find(R"("'=cmd|' /C calc'!A0")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("deny rule ""a,b""")"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n"));
  auto fields = [](const std::string& line) {
    bool quoted = false;
    int count = 1;
    for (char c : line) {
      quoted = c == '"' ? !quoted : quoted;
      count += c == ',' && !quoted ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(fields(text), fields(ledger_head(true, ledger_format::csv)));
  EXPECT_EQ(fields(to_text(ledger_run{}, ledger_format::csv)),
            fields(ledger_head(false, ledger_format::csv)));
}

} // namespace
} // namespace bulkhead
