#include "protocol/line_splitter.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

/// Collects what a splitter reports; an overlong line shows as "<overlong>".
struct collector {
  std::vector<std::string> lines;
  line_splitter::sink sink{[this](std::string_view line) { lines.emplace_back(line); },
                           [this] { lines.emplace_back("<overlong>"); }};
};

using names = std::vector<std::string>;

TEST(line_splitter, cuts_lines_however_they_come) {
  const std::string text = "one\n\ntwo\r\nthr\ree\n\r\nrest";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    line_splitter splitter{100};
    collector seen;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      splitter.feed(std::string_view{text}.substr(at, piece), seen.sink);
    }
    EXPECT_EQ(seen.lines, (names{"one", "", "two", "thr\ree", ""})) << piece;
    EXPECT_EQ(splitter.partial(), "rest");
    EXPECT_EQ(splitter.held(), 4U);
  }
}

TEST(line_splitter, takes_a_line_of_exactly_the_limit) {
  const std::string text = "12345\n123456\n12345\r\n12345\r6\n1\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    line_splitter splitter{5};
    collector seen;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      splitter.feed(std::string_view{text}.substr(at, piece), seen.sink);
    }
    EXPECT_EQ(seen.lines, (names{"12345", "<overlong>", "12345", "<overlong>", "1"})) << piece;
  }
}

TEST(line_splitter, reports_an_overlong_line_at_once_and_holds_nothing_of_it) {
  line_splitter splitter{10};
  collector seen;
  splitter.feed("12345678", seen.sink);
  EXPECT_TRUE(seen.lines.empty());
  splitter.feed("9abcdef", seen.sink);
  EXPECT_EQ(seen.lines, names{"<overlong>"});
  for (int i = 0; i < 1000; ++i) {
    splitter.feed("more and more", seen.sink);
    EXPECT_EQ(splitter.held(), 0U);
  }
  splitter.feed("end\nnext\n", seen.sink);
  EXPECT_EQ(seen.lines, (names{"<overlong>", "next"}));
}

TEST(line_splitter, gives_back_the_memory_of_a_long_line) {
  line_splitter splitter{std::size_t{1} << 24};
  collector seen;
  const std::string long_line(std::size_t{1} << 22, 'x');
  splitter.feed(long_line, seen.sink);
  EXPECT_EQ(splitter.held(), long_line.size());
  splitter.feed("\n", seen.sink);
  ASSERT_EQ(seen.lines, names{long_line});
  EXPECT_EQ(splitter.held(), 0U);
  EXPECT_LE(splitter.partial().capacity(), std::size_t{64} << 10);
}

} // namespace
} // namespace bulkhead
