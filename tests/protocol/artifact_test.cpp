#include "protocol/artifact.hpp"

#include <gtest/gtest.h>

#include "protocol/limits.hpp"

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

TEST(artifact, a_name_is_no_path_and_drives_no_terminal) {
  for (const auto& name : {"plot.png"s, "a b"s, "é😀"s, "..a"s, "a.."s, "..."s, "C:\\x"s, "-rf"s,
                           "%2F"s, std::string(255, 'n')}) {
    EXPECT_TRUE(is_artifact_name(name)) << name;
  }
  for (const auto& name :
       {""s, "."s, ".."s, "/"s, "a/b"s, "../../etc/passwd"s, "a\0b"s, "a\nb"s, "\x1b[2J"s, "\x7f"s,
        "\xC2\x9B"s, "\xFF"s, "\xC0\xAF"s, std::string(256, 'n')}) {
    EXPECT_FALSE(is_artifact_name(name)) << name;
  }
}

TEST(artifact, a_media_type_is_a_type_and_a_subtype) {
  for (const auto* type : {"image/png", "text/plain; charset=utf-8", "text/plain; charset=UTF-8",
                           "application/vnd.a-b.c+json", "x/y"}) {
    EXPECT_TRUE(is_mime_type(type)) << type;
  }
  for (const auto& type : {""s, "png"s, "/"s, "image/"s, "/png"s, "a/b/c"s, "a b/c"s,
                           "text/html; a=b"s, "text/plain;charset=utf-8"s, "\"/x"s, "a/b\r\nX: y"s,
                           "; charset=utf-8"s, "image/" + std::string(122, 'x')}) {
    EXPECT_FALSE(is_mime_type(type)) << type;
  }
}

TEST(artifact, an_image_is_what_says_so_twice) {
  EXPECT_TRUE(is_shown_image("image/png", "\x89PNG\r\n\x1a\nxx"));
  EXPECT_TRUE(is_shown_image("Image/JPEG", "\xFF\xD8\xFF\xE0"));
  EXPECT_TRUE(is_shown_image("image/gif", "GIF89a"));
  EXPECT_TRUE(is_shown_image("image/webp", "RIFF\1\2\3\4WEBPVP8"s));
  EXPECT_FALSE(is_shown_image("image/png", "<script>"));
  EXPECT_FALSE(is_shown_image("image/png", "GIF89a"));
  EXPECT_FALSE(is_shown_image("text/html", "\x89PNG\r\n\x1a\n"));
  EXPECT_FALSE(is_shown_image("image/webp", "RIFF\1\2\3\4WAVE"s));
  EXPECT_FALSE(is_shown_image("image/webp", "RIFF"));
  EXPECT_FALSE(is_shown_image("image/svg+xml", "<svg/>"));
  EXPECT_FALSE(is_shown_image("image/png", ""));
}

} // namespace
} // namespace bulkhead
