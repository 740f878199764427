#include "protocol/env_file.hpp"

#include <gtest/gtest.h>

#include "protocol/content_digest.hpp"

namespace bulkhead {
namespace {

using variables = std::map<std::string, std::string>;

TEST(env_file, lines) {
  EXPECT_EQ(read_env_file("").value(), variables{});
  EXPECT_EQ(read_env_file("\xEF\xBB\xBF"
                          "A=1\r\n\n# B=2\nexport C = x y # no\nD=\nE=a=b#c\nA=2")
                .value(),
            (variables{{"A", "2"}, {"C", "x y"}, {"D", ""}, {"E", "a=b#c"}}));
  EXPECT_EQ(read_env_file(R"(A="x # y\n\"z\\" # note
B='x\n"'
C=${A}
my.key-1=v)")
                .value(),
            (variables{{"A", "x # y\n\"z\\"}, {"B", "x\\n\""}, {"C", "${A}"}, {"my.key-1", "v"}}));
}

TEST(env_file, what_is_no_line_is_told_by_its_number_alone) {
  for (auto text :
       {"A=1\ns3cret", "A=1\n=s3cret", "A=1\nB=\"s3cret", "A=1\nB='s3cret'x", "A=1\na b=s3cret"}) {
    auto result = read_env_file(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().message, "line 2: this is no NAME=VALUE");
  }
}

TEST(content_digest, is_sha_256) {
  EXPECT_EQ(content_digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(content_digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

} // namespace
} // namespace bulkhead
