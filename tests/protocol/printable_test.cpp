#include "protocol/printable.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using namespace std::string_view_literals;

TEST(printable, what_drives_a_terminal_is_written_out) {
  EXPECT_EQ(printable("\x1b[2J\a"), "\\u001b[2J\\u0007");
  EXPECT_EQ(printable("a\0\x7f\r"sv), "a\\u0000\\u007f\\u000d");
  EXPECT_EQ(printable("\xC2\x9B\x32J"), "\\u009b2J");
  EXPECT_EQ(printable("\u202Ea\u2066\u2069\u200E\u200F\u202A"),
            "\\u202ea\\u2066\\u2069\\u200e\\u200f\\u202a");
  EXPECT_EQ(printable("a\u061Cb\u061B\u0627"), "a\\u061cb\u061B\u0627");
  EXPECT_EQ(printable("\u2028\u2029\u200B\u2060\u2064"), "\\u2028\\u2029\\u200b\\u2060\\u2064");
}

TEST(printable, the_rest_stays) {
  for (auto text : {"", "plain\n\ttext", "ä€𝄞 \u2026 \u2065 \u00A0 \u200D", "\xE2", "\xC2",
                    "\xE2\x80", "\xFF\xFE"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(printable, json_keeps_its_meaning) {
  nlohmann::json value = "\u202E\u009B\x7f\x1b ä";
  auto text = printable(value.dump());
  EXPECT_EQ(nlohmann::json::parse(text), value);
  EXPECT_EQ(text.find("\u202E"), std::string::npos);
}

TEST(shortened, ends_between_characters_of_any_script) {
  EXPECT_EQ(shortened("plain text", 5), "plain…");
  EXPECT_EQ(shortened("привет", 6), "при…");
  EXPECT_EQ(shortened("привет", 7), "при…");
  EXPECT_EQ(shortened("漢字", 6), "漢字");
}

} // namespace
} // namespace bulkhead
