#include "protocol/resource_contents.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;
using std::string_literals::operator""s;

const std::string uri = "bulkhead://output/0123456789abcdef0123456789abcdef/stdout";

json contents(const std::string& bytes, std::uint64_t offset, std::uint64_t kept,
              std::uint64_t total = 0, const std::string& why = {}) {
  resource_part part{bytes, kept, std::max(kept, total), "text/plain; charset=utf-8", why};
  return json::parse("[" + part_contents(uri, offset, part) + "]");
}

json range_of(const json& items) {
  return items[0]["_meta"]["bulkhead/range"];
}

std::string bytes_of(const json& item) {
  return item.contains("text") ? item["text"].get<std::string>()
                               : decode_base64(item["blob"].get<std::string>()).value();
}

TEST(resource_contents, a_whole_text_is_one_item) {
  const auto items = contents("hé\n", 0, 4);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0]["uri"], uri);
  EXPECT_EQ(items[0]["text"], "hé\n");
  EXPECT_EQ(range_of(items),
            (json{{"offset", 0}, {"bytes", 4}, {"keptBytes", 4}, {"totalBytes", 4}}));
}

TEST(resource_contents, a_part_says_where_to_go_on) {
  const auto items = contents("abc", 10, 100);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(range_of(items)["nextOffset"], 13);
  EXPECT_EQ(items[1]["uri"], uri + "?offset=13");
  EXPECT_NE(items[1]["text"].get<std::string>().find("?offset=13"), std::string::npos);
}

TEST(resource_contents, what_was_cut_is_said) {
  const auto items = contents("abc", 0, 3, 1000, "over 3 bytes");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_FALSE(range_of(items).contains("nextOffset"));
  EXPECT_EQ(range_of(items)["totalBytes"], 1000);
  EXPECT_EQ(range_of(items)["notKept"], "over 3 bytes");
  EXPECT_NE(items[1]["text"].get<std::string>().find("over 3 bytes"), std::string::npos);
}

TEST(resource_contents, what_is_no_text_is_a_blob) {
  for (const auto& bytes : {"\xFF\xFE"s, "a\x80"s, "\x80"s, "\0\xC3("s}) {
    const auto items = contents(bytes, 0, 10);
    EXPECT_FALSE(items[0].contains("text"));
    EXPECT_EQ(bytes_of(items[0]), bytes);
    EXPECT_EQ(range_of(items)["nextOffset"], bytes.size());
  }
  // At its very end nothing follows that could complete the character.
  EXPECT_EQ(bytes_of(contents("a\xC3", 0, 2)[0]), "a\xC3");
}

TEST(resource_contents, parts_of_a_text_join_to_the_same_bytes) {
  std::string all;
  while (all.size() < 2000) {
    all += "aé€😀";
  }
  for (const std::size_t step : {1U, 2U, 3U, 4U, 5U, 7U, 64U}) {
    std::string joined;
    for (std::uint64_t offset = 0; offset < all.size();) {
      const auto items = contents(all.substr(offset, step), offset, all.size());
      joined += bytes_of(items[0]);
      EXPECT_EQ(items[0].contains("text"), is_utf8(bytes_of(items[0])));
      offset = range_of(items).value("nextOffset", std::uint64_t{all.size()});
      ASSERT_EQ(joined.size(), offset);
    }
    EXPECT_EQ(joined, all) << step;
  }
}

TEST(resource_contents, beyond_the_end_is_nothing) {
  const auto items = contents("", 50, 10);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0]["text"], "");
  EXPECT_FALSE(range_of(items).contains("nextOffset"));
}

} // namespace
} // namespace bulkhead
