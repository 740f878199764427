#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

TEST(strip_json_comments, keeps_length_and_lines) {
  EXPECT_EQ(strip_json_comments("{} // x\n"), "{}     \n");
  EXPECT_EQ(strip_json_comments("/* a\nb */{}"), "    \n    {}");
  EXPECT_EQ(strip_json_comments("[1,]"), "[1 ]");
  EXPECT_EQ(strip_json_comments("{\"a\":1, /* c */ }"), "{\"a\":1          }");
  EXPECT_EQ(strip_json_comments("\xEF\xBB\xBF{}"), "   {}");
  EXPECT_EQ(strip_json_comments("// x\r\n{}"), "    \r\n{}");
  EXPECT_EQ(strip_json_comments(""), "");
}

TEST(strip_json_comments, leaves_strings_alone) {
  for (auto text : {R"({"u":"http://x/*y*/"})", R"(["\"//", ",]"])", R"(["\\"])"}) {
    EXPECT_EQ(strip_json_comments(text), text);
  }
  EXPECT_EQ(strip_json_comments(R"(["\\", // x)"), R"(["\\",     )");
}

TEST(strip_json_comments, does_not_repair_errors) {
  for (auto text :
       {"[,]", "{,}", "[1,,]", "{\"a\":,}", "[1 /* ", "{} /", "[\"a", "[\"a\\", "/", "/*/"}) {
    auto result = strip_json_comments(text);
    EXPECT_EQ(result.size(), std::string_view(text).size());
    EXPECT_FALSE(nlohmann::json::accept(result)) << text << " became " << result;
  }
}

TEST(strip_json_comments, a_real_file) {
  auto text = strip_json_comments(R"({
  // what an editor writes
  "servers": { /* none
                  so far */
    "a": {"command": "x", "args": ["1", "2",],}, // last
  },
})");
  auto value = nlohmann::json::parse(text);
  EXPECT_EQ(value["servers"]["a"]["args"].size(), 2U);
}

} // namespace
} // namespace bulkhead
