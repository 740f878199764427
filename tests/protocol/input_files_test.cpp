#include "protocol/input_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;
using std::string_literals::operator""s;

expected<std::vector<input_file>> read(const json& files, const limits& bounds = {}) {
  return read_input_files(files.dump(), bounds);
}

void expect_refused(const json& files, errc code, const std::string& words,
                    const limits& bounds = {}) {
  const auto result = read(files, bounds);
  ASSERT_FALSE(result) << files;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
}

TEST(input_files, text_and_bytes) {
  EXPECT_TRUE(read_input_files("", {})->empty());
  EXPECT_TRUE(read_input_files("null", {})->empty());
  EXPECT_TRUE(read(json::array())->empty());
  const auto files = read({{{"path", "data/in.csv"}, {"text", "a,é\n"}},
                           {{"path", "raw"}, {"b64", "AP8K"}},
                           {{"b64", ""}, {"path", "data/empty"}}});
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(*files, (std::vector<input_file>{
                        {"data/in.csv", "a,é\n"}, {"raw", "\0\xFF\n"s}, {"data/empty", ""}}));
}

TEST(input_files, paths_lead_nowhere_else) {
  for (const auto& path :
       {""s, "/etc/passwd"s, "../x"s, "a/../../x"s, "a/.."s, "."s, "./a"s, "a//b"s, "a/"s, "a\0b"s,
        "a\nb"s, std::string(256, 'n'), std::string(1025, 'n'), "a/\x1b[2J"s}) {
    expect_refused({{{"path", path}, {"text", ""}}}, errc::invalid_argument, "path");
  }
  EXPECT_TRUE(read({{{"path", "..."}, {"text", ""}}}));
  EXPECT_TRUE(read({{{"path", "a..b/-rf/ü"}, {"text", ""}}}));
}

TEST(input_files, a_path_is_one_file) {
  expect_refused({{{"path", "a"}, {"text", ""}}, {{"path", "a"}, {"text", ""}}},
                 errc::invalid_argument, "twice");
  expect_refused({{{"path", "a"}, {"text", ""}}, {{"path", "a/b"}, {"text", ""}}},
                 errc::invalid_argument, "\"a\" is a file");
  expect_refused({{{"path", "a/b/c"}, {"text", ""}}, {{"path", "a/b"}, {"text", ""}}},
                 errc::invalid_argument, "folder");
}

TEST(input_files, what_is_no_file) {
  for (const auto& files : {json("x"), json::object(), json(1)}) {
    expect_refused(files, errc::invalid_argument, "array");
  }
  expect_refused({"x"}, errc::invalid_argument, "objects");
  expect_refused({{{"text", ""}}}, errc::invalid_argument, "path must be a string");
  expect_refused({{{"path", 1}, {"text", ""}}}, errc::invalid_argument, "path must be a string");
  expect_refused({{{"path", "a"}}}, errc::invalid_argument, "exactly one");
  expect_refused({{{"path", "a"}, {"text", ""}, {"b64", ""}}}, errc::invalid_argument, "exactly");
  expect_refused({{{"path", "a"}, {"text", 1}}}, errc::invalid_argument, "must be a string");
  expect_refused({{{"path", "a"}, {"b64", "x"}}}, errc::invalid_argument, "base64");
  expect_refused({{{"path", "a"}, {"content", ""}}}, errc::invalid_argument, "\"content\"");
}

TEST(input_files, bounds) {
  limits bounds;
  bounds.input_files = 2;
  bounds.input_bytes = 6;
  const json one = {{"path", "a"}, {"text", "abc"}};
  const json two = {{"path", "b"}, {"b64", "YWJj"}};
  EXPECT_TRUE(read({one, two}, bounds));
  expect_refused({one, two, {{"path", "c"}, {"text", ""}}}, errc::too_large, "more than 2", bounds);
  expect_refused({one, {{"path", "b"}, {"text", "abcd"}}}, errc::too_large, "7 bytes", bounds);
}

} // namespace
} // namespace bulkhead
