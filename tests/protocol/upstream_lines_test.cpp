#include "protocol/upstream_lines.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace bulkhead::upstream {
namespace {

/// What a `lines` object reported, in order.
struct report {
  std::vector<std::string> lines;
  std::vector<std::tuple<errc, std::string, std::string>> dropped;

  upstream::lines::sink sink() {
    return {[this](std::string_view line) { lines.emplace_back(line); },
            [this](errc reason, std::string_view head, std::string_view tail) {
              dropped.emplace_back(reason, head, tail);
            }};
  }
};

TEST(upstream_lines, cuts_lines_wherever_the_pieces_end) {
  const std::string text = "one\r\n\ntwo\nrest";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    report seen;
    lines splitter{100};
    for (std::size_t at = 0; at < text.size(); at += size) {
      splitter.feed(std::string_view{text}.substr(at, size), seen.sink());
    }
    EXPECT_EQ(seen.lines, (std::vector<std::string>{"one", "", "two"})) << size;
    EXPECT_EQ(splitter.held(), 4U);
  }
}

TEST(upstream_lines, keeps_both_ends_of_a_line_that_is_too_long) {
  auto line = R"({"jsonrpc":"2.0","id":1,"result":")" + std::string(2000, 'x') + R"(","z":1})";
  for (std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{300}, line.size() + 10}) {
    report seen;
    lines splitter{1000};
    auto text = "before\n" + line + "\nafter\n";
    for (std::size_t at = 0; at < text.size(); at += size) {
      splitter.feed(std::string_view{text}.substr(at, size), seen.sink());
    }
    EXPECT_EQ(seen.lines, (std::vector<std::string>{"before", "after"})) << size;
    ASSERT_EQ(seen.dropped.size(), 1U) << size;
    const auto& [reason, head, tail] = seen.dropped.front();
    EXPECT_EQ(reason, errc::too_large);
    EXPECT_EQ(head, line.substr(0, 256)) << size;
    EXPECT_EQ(tail, (line + "\n").substr(line.size() + 1 - 256)) << size;
  }
}

TEST(upstream_lines, a_line_of_exactly_the_limit_passes) {
  report seen;
  lines splitter{10};
  splitter.feed("0123456789\r\n01234567890\n", seen.sink());
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"0123456789"}));
  EXPECT_EQ(seen.dropped.size(), 1U);
}

TEST(upstream_lines, drops_the_current_line_on_demand_and_reports_it_at_its_end) {
  report seen;
  lines splitter{1000};
  splitter.feed("first\n{\"id\":5", seen.sink());
  splitter.drop_line(errc::overloaded);
  EXPECT_EQ(splitter.held(), 0U);
  splitter.feed(",\"result\"", seen.sink());
  EXPECT_TRUE(seen.dropped.empty());
  splitter.feed(":{}}\nnext\n", seen.sink());
  ASSERT_EQ(seen.dropped.size(), 1U);
  EXPECT_EQ(std::get<0>(seen.dropped.front()), errc::overloaded);
  EXPECT_EQ(std::get<1>(seen.dropped.front()), "{\"id\":5,\"result\":{}}\n");
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"first", "next"}));
}

salvaged both(std::string_view text) {
  return salvage(text, text);
}

TEST(salvage, finds_the_id_at_either_end) {
  EXPECT_EQ(both(R"({"jsonrpc":"2.0","id":7,"result":{"a":1}})"), (salvaged{true, 7}));
  EXPECT_EQ(both(R"({"id": 7 ,"jsonrpc":"2.0","result":{)"), (salvaged{true, 7}));
  EXPECT_EQ(both(R"({"result":{"a":1},"jsonrpc":"2.0","id":9})"), (salvaged{true, 9}));
  EXPECT_EQ(salvage(R"({"result":{"x":")", "… \"},\"jsonrpc\":\"2.0\", \"id\" : 9 } \r\n"),
            (salvaged{true, 9}));
}

TEST(salvage, takes_nothing_inside_a_result_for_the_id) {
  EXPECT_EQ(both(R"({"result":{"id":7}})"), (salvaged{true, std::nullopt}));
  EXPECT_EQ(both(R"({"result":{"id":7},"z":"a,\"id\":8}"})"), (salvaged{true, std::nullopt}));
  EXPECT_EQ(both(R"({"result":{},"xid":8})"), (salvaged{true, std::nullopt}));
  EXPECT_EQ(both(R"({"x\"id":8})"), (salvaged{true, std::nullopt}));
  EXPECT_EQ(both(R"({"result":{},"id":"8"})"), (salvaged{true, std::nullopt}));
  EXPECT_EQ(both(R"({"id":1.5,"result":{}})"), (salvaged{true, std::nullopt}));
}

TEST(salvage, tells_requests_notifications_and_noise_from_answers) {
  EXPECT_FALSE(
      both(R"({"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{)").answer);
  EXPECT_FALSE(both(R"({"method":"notifications/message","params":{"id":7},"id":7})").answer);
  EXPECT_FALSE(both("listening on port 3000").answer);
  EXPECT_FALSE(both("").answer);
  EXPECT_EQ(both("{").id, std::nullopt);
  EXPECT_EQ(both("}").id, std::nullopt);
}

} // namespace
} // namespace bulkhead::upstream
