#include "protocol/json_text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/utf8.hpp"

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

TEST(json_text, quotes) {
  EXPECT_EQ(json_quote(""), "\"\"");
  EXPECT_EQ(json_quote("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(json_quote("\n\r\t\x01\0"s), R"("\n\r\t\u0001\u0000")");
  EXPECT_EQ(json_quote("é€😀\x7F"), "\"é€😀\x7F\"");
  EXPECT_EQ(json_quote("a\xFF\xE2\x82z"), "\"a\uFFFD\uFFFDz\"");
}

TEST(json_text, every_byte_survives_or_is_replaced) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto text = "12345678"s + static_cast<char>(byte) + "x";
    EXPECT_EQ(nlohmann::json::parse(json_quote(text)).get<std::string>(), to_utf8(text)) << byte;
  }
}

TEST(json_text, puts_values_in_one_line) {
  std::string out = "x\n";
  append_json_line(out, "{\r\n  \"a\": \"\\n\",\n\"b\":1\r}\n");
  EXPECT_EQ(out, "x\n{    \"a\": \"\\n\", \"b\":1 } ");
}

} // namespace
} // namespace bulkhead
