#include "protocol/json_members.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

json_outline outline_of(std::string_view text) {
  return scan_json(text, {1 << 20}).value();
}

TEST(json_members, keeps_the_first_error) {
  const auto object = outline_of(R"({"a":1,"b":true})");
  json_members members{object, "a thing", errc::invalid_argument};
  EXPECT_TRUE(members.sound());
  static_cast<void>(members.text("a", 10));
  static_cast<void>(members.number("b", 0, 9));
  EXPECT_FALSE(members.sound());
  EXPECT_EQ(members.reason(), (error{errc::invalid_argument, "a thing: \"a\" must be a string"}));
}

TEST(json_members, null_counts_as_absent) {
  const auto object = outline_of(R"({"a":null})");
  json_members members{object, "a thing", errc::malformed};
  EXPECT_EQ(members.json("a"), "");
  EXPECT_EQ(members.optional_text("a", 1), std::nullopt);
  EXPECT_EQ(members.optional_number("a", 1, 2), std::nullopt);
  EXPECT_EQ(members.optional_object("a"), "");
  EXPECT_TRUE(members.sound());
  static_cast<void>(members.text("a", 1));
  EXPECT_FALSE(members.sound());
}

TEST(json_members, measures_text_once_decoded) {
  const auto object = outline_of(R"({"a":"\u0041\u0042","b":"ABC"})");
  json_members members{object, "a thing", errc::malformed};
  EXPECT_EQ(members.text("a", 2), "AB");
  EXPECT_TRUE(members.sound());
  static_cast<void>(members.text("b", 2));
  EXPECT_EQ(members.reason().code, errc::too_large);
}

} // namespace
} // namespace bulkhead
