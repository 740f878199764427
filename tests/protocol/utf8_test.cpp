#include "protocol/utf8.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

TEST(utf8, accepts_the_bounds_of_each_length) {
  for (const auto* text :
       {"\x01", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(text)) << testing::PrintToString(text);
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("\0"s));
}

TEST(utf8, refuses_what_table_3_7_leaves_out) {
  for (const auto* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xF0\x9F\x98", "\xFF", "plain text then \xFE"}) {
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(utf8, replaces_each_maximal_part) {
  // The example of Unicode 15, section 3.9, table 3-8.
  EXPECT_EQ(to_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(to_utf8("héllo 😀"), "héllo 😀");
  EXPECT_EQ(to_utf8("\xC0\x80"), "\uFFFD\uFFFD");
}

TEST(utf8, finds_each_special_byte_in_every_position) {
  for (const char special : {'"', '\\', '\x1F', '\0', '\x80', '\xFF'}) {
    for (std::size_t at = 0; at < 24; ++at) {
      std::string text(24, 'x');
      text[at] = special;
      EXPECT_EQ(plain_run(text, 0), at) << static_cast<int>(special);
    }
  }
  EXPECT_EQ(plain_run("\x7F\x20 !#[]", 0), 7U);
}

TEST(utf8, trims_only_split_characters) {
  EXPECT_EQ(trim_split_end("ab\xE2\x82"), "ab");
  EXPECT_EQ(trim_split_end("ab\xF0\x9F\x98"), "ab");
  EXPECT_EQ(trim_split_end("ab\xC3"), "ab");
  EXPECT_EQ(trim_split_end("ab€"), "ab€");
  EXPECT_EQ(trim_split_end("ab\xFF"), "ab\xFF");
  EXPECT_EQ(trim_split_end("\x80\x80\x80\x80"), "\x80\x80\x80\x80");
  EXPECT_EQ(trim_split_end(""), "");
  EXPECT_EQ(trim_split_start("\x82\xACz"), "z");
  EXPECT_EQ(trim_split_start("€z"), "€z");
  EXPECT_EQ(trim_split_start("\x80\x80\x80\x80"), "\x80");
}

TEST(utf8, encodes_every_length) {
  std::string text;
  for (const char32_t code : {U'A', U'é', U'€', U'😀'}) {
    append_utf8(text, code);
  }
  EXPECT_EQ(text, "Aé€😀");
}

} // namespace
} // namespace bulkhead
