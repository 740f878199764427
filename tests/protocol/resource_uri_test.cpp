#include "protocol/resource_uri.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

const std::string handle = "0123456789abcdef0123456789abcdef";

TEST(resource_uri, streams) {
  const auto uri = output_uri(handle, stream_id::err);
  EXPECT_EQ(uri, "bulkhead://output/" + handle + "/stderr");
  const auto read = parse_resource_uri(uri);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (resource_uri{handle, stream_id::err, {}, 0, {}}));
}

TEST(resource_uri, names_come_back_as_they_were) {
  for (const auto& name : {"plot.png"s, "a b?c#d%&=+"s, "é😀"s, "..x"s, "bulkhead:x"s, "\\"s}) {
    const auto uri = artifact_uri(handle, name);
    EXPECT_EQ(uri.find_first_of(" ?#\\&"), std::string::npos) << uri;
    const auto read = parse_resource_uri(uri);
    ASSERT_TRUE(read) << uri;
    EXPECT_EQ(read->artifact, name);
    EXPECT_FALSE(read->stream);
  }
}

TEST(resource_uri, ranges) {
  const auto base = output_uri(handle, stream_id::out);
  EXPECT_EQ(parse_resource_uri(base + "?offset=5&length=7"),
            (resource_uri{handle, stream_id::out, {}, 5, 7}));
  EXPECT_EQ(parse_resource_uri(base + "?length=0"),
            (resource_uri{handle, stream_id::out, {}, 0, 0}));
  EXPECT_EQ(parse_resource_uri(uri_from(base, 9)),
            (resource_uri{handle, stream_id::out, {}, 9, {}}));
  EXPECT_EQ(parse_resource_uri(base + "?"), (resource_uri{handle, stream_id::out, {}, 0, {}}));
  for (const auto* bad : {"?offset=-1", "?offset=", "?offset", "?offset=1x", "?offset=1&offset=2",
                          "?offset=9007199254740992", "?lenght=1", "?offset=99999999999999999999",
                          "?offset= 1", "?&"}) {
    EXPECT_FALSE(parse_resource_uri(base + bad)) << bad;
  }
}

TEST(resource_uri, nothing_else_is_one) {
  for (const auto& uri :
       {""s, "bulkhead://capabilities"s, "file:///etc/passwd"s, "bulkhead://output/" + handle,
        "bulkhead://output/" + handle + "/stdin", "bulkhead://output/" + handle + "/",
        "bulkhead://output/" + handle + "/stdout/x", "bulkhead://output/../stdout"s,
        "bulkhead://output/0123/stdout"s, "bulkhead://artifacts/" + handle + "/",
        "bulkhead://artifacts/" + handle + "/..", "bulkhead://artifacts/" + handle + "/%2e%2e",
        "bulkhead://artifacts/" + handle + "/a%2Fb", "bulkhead://artifacts/" + handle + "/a/b",
        "bulkhead://artifacts/" + handle + "/a%00b", "bulkhead://artifacts/" + handle + "/%f",
        "bulkhead://artifacts/" + handle + "/%zz", "bulkhead://artifacts/" + handle + "/%ff",
        "bulkhead://output/0123456789ABCDEF0123456789ABCDEF/stdout"s}) {
    EXPECT_FALSE(parse_resource_uri(uri)) << uri;
  }
}

TEST(resource_uri, paths_as_file_uris) {
  EXPECT_EQ(file_uri("/a b/ü"), "file:///a%20b/%C3%BC");
}

} // namespace
} // namespace bulkhead
