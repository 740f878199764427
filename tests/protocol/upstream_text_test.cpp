#include "protocol/upstream_text.hpp"

#include <gtest/gtest.h>

#include "protocol/utf8.hpp"

namespace bulkhead::upstream {
namespace {

TEST(printable, replaces_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\nc\x7f", 100), "a [2Jb  c ");
  EXPECT_EQ(printable("x\xc2\x9b"
                      "31m",
                      100),
            "x  31m")
      << "C1 control characters";
  EXPECT_EQ(printable("caf\xc3\xa9 \xff", 100), "caf\xc3\xa9 \xef\xbf\xbd");
}

TEST(printable, cuts_at_a_character) {
  for (std::size_t most = 3; most < 12; ++most) {
    auto cut = printable("ééééééé", most);
    EXPECT_LE(cut.size(), most);
    EXPECT_TRUE(is_utf8(cut));
    EXPECT_TRUE(cut.ends_with("…"));
  }
  EXPECT_EQ(printable("ééé", 6), "ééé");
}

TEST(secret_filter, hides_values_but_not_short_ones) {
  secret_filter filter{{{"KEY", "s3cr3t-value"}, {"DEBUG", "true"}, {"LONGER", "s3cr3t-value-2"}}};
  EXPECT_EQ(filter.hide("key s3cr3t-value, s3cr3t-value-2: true"), "key [hidden], [hidden]: true");
  EXPECT_EQ(secret_filter{}.hide("text"), "text");
}

TEST(secret_filter, hides_each_line_of_a_value) {
  secret_filter filter{{{"PEM", "-----BEGIN\nMIIabcdef\nabc\n"}}};
  EXPECT_EQ(filter.hide("MIIabcdef abc -----BEGIN"), "[hidden] abc [hidden]");
}

TEST(stderr_tail, keeps_whole_lines_of_the_end) {
  stderr_tail tail{20, {}};
  tail.append("first line\nsecond line\nthird\nfourth\n");
  EXPECT_EQ(tail.text(), "third\nfourth");
  tail.clear();
  EXPECT_EQ(tail.text(), "");
  tail.append("short\x1b[0m\n\n");
  EXPECT_EQ(tail.text(), "short [0m");
}

TEST(stderr_tail, never_shows_a_part_of_a_secret) {
  const std::string secret = "0123456789abcdef";
  for (std::size_t filler = 0; filler < 200; ++filler) {
    stderr_tail tail{40, secret_filter{{{"TOKEN", secret}}}};
    tail.append("token " + secret + std::string(filler, '.'));
    auto text = tail.text();
    EXPECT_LE(text.size(), 40U);
    EXPECT_EQ(text.find("def"), std::string::npos) << filler << ": " << text;
  }
}

TEST(stderr_tail, stays_bounded) {
  stderr_tail tail{100, {}};
  for (int i = 0; i < 10'000; ++i) {
    tail.append("\xff\xfe line of rubbish\n");
  }
  EXPECT_LE(tail.text().size(), 100U);
  EXPECT_TRUE(is_utf8(tail.text()));
}

} // namespace
} // namespace bulkhead::upstream
