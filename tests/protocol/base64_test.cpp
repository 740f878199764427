#include "protocol/base64.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

TEST(base64, decodes_the_vectors_of_rfc_4648) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(decode_base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
}

TEST(base64, decodes_bytes_of_every_kind) {
  EXPECT_EQ(decode_base64("AAAA"), "\0\0\0"s);
  EXPECT_EQ(decode_base64("////"), "\xFF\xFF\xFF");
  EXPECT_EQ(decode_base64("+/+/"), "\xFB\xFF\xBF");
  EXPECT_EQ(decode_base64("gIE="), "\x80\x81");
}

TEST(base64, refuses_everything_else) {
  for (const auto* text :
       {"Z", "Zg", "Zg=", "Zm8", "Zh==", "Zm9=", "Zm9vY===", "====", "A===", "=AAA", "A=AA", "AA=A",
        "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm-_", "Zm9v====", "Zm9\xC3"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

TEST(base64, encodes_what_it_decodes) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i * 7);
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
}

TEST(base64, safe_in_urls) {
  EXPECT_EQ(encode_base64url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(encode_base64url("a"), "YQ");
  EXPECT_EQ(encode_base64url(""), "");
  for (const auto* text : {"", "a", "ab", "abc", "\xfb\xff\xfe?"}) {
    EXPECT_EQ(decode_base64url(encode_base64url(text)), text);
  }
  for (const auto* text : {"Y", "YQ==", "+_8", "-/8", "YR", "YQ YQ", "ä"}) {
    EXPECT_FALSE(decode_base64url(text)) << text;
  }
}

} // namespace
} // namespace bulkhead
