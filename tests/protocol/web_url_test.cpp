#include "protocol/web_url.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

web_url url(std::string_view text) {
  auto result = read_web_url(text, "a URL");
  EXPECT_TRUE(result) << text << ": " << (result ? "" : result.error().message);
  return result.value_or(web_url{});
}

TEST(web_url, has_parts) {
  auto one = url("HTTPS://Example.COM:8443/Path/x?q=1&r=%20#part");
  EXPECT_EQ(one.scheme, "https");
  EXPECT_EQ(one.host, "example.com");
  EXPECT_EQ(one.port, 8443);
  EXPECT_EQ(one.path, "/Path/x");
  EXPECT_EQ(one.query, "q=1&r=%20");
  EXPECT_EQ(one.text(), "https://example.com:8443/Path/x?q=1&r=%20");
}

TEST(web_url, knows_the_ports_of_its_schemes) {
  EXPECT_EQ(url("https://a.example").origin(), "https://a.example");
  EXPECT_EQ(url("https://a.example:443/").origin(), "https://a.example");
  EXPECT_EQ(url("http://a.example:80/").origin(), "http://a.example");
  EXPECT_EQ(url("http://a.example:443/").origin(), "http://a.example:443");
  EXPECT_EQ(url("https://a.example").text(), "https://a.example/");
}

TEST(web_url, refuses_what_is_none) {
  for (auto text : {"", "example.com", "ftp://example.com/", "file:///etc/passwd", "javascript:x",
                    "https:/a.example/", "https://", "https://user@a.example/",
                    "https://user:word@a.example/", "https://a.example/\n", "https://a b/",
                    "https://a.example/\"x", "https://a.example:99999/", "https://a.example:0/",
                    "http://%A4a.example/", "http://0x7f%2e1/", "http://a%2fb.example/"}) {
    auto result = read_web_url(text, "a URL");
    EXPECT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, errc::invalid_argument);
  }
  EXPECT_TRUE(read_web_url("https://a.example/%2f?%41", "a URL"));
  EXPECT_FALSE(read_web_url("https://a.example/" + std::string(longest_url, 'x'), "a URL"));
}

TEST(web_url, never_prints_what_drives_a_terminal) {
  auto result = read_web_url("https://a.example/\x1b[31m", "a URL");
  EXPECT_EQ(result.error().message.find('\x1b'), std::string::npos);
}

TEST(web_url, tells_loopback) {
  for (auto text : {"http://localhost/", "http://LOCALHOST:1/", "http://x.localhost/",
                    "http://127.0.0.1/", "http://127.9.9.9/", "http://[::1]:80/",
                    "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://2130706433/"}) {
    EXPECT_TRUE(url(text).is_loopback()) << text;
  }
  for (auto text : {"http://localhost.example/", "http://127.example/", "http://10.0.0.1/",
                    "http://[::2]/", "http://notlocalhost/"}) {
    EXPECT_FALSE(url(text).is_loopback()) << text;
  }
}

TEST(web_url, tells_private_addresses) {
  for (auto text :
       {"http://10.1.2.3/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/",
        "http://169.254.169.254/", "http://100.64.0.1/", "http://0.0.0.0/", "http://[fd00::1]/",
        "http://[fe80::1]/", "http://[::]/", "http://[::ffff:10.0.0.1]/", "http://127.0.0.1/"}) {
    EXPECT_TRUE(url(text).is_private()) << text;
  }
  for (auto text : {"http://172.32.0.1/", "http://172.15.0.1/", "http://11.0.0.1/",
                    "http://100.128.0.1/", "http://[2001:db8::1]/", "https://a.example/"}) {
    EXPECT_FALSE(url(text).is_private()) << text;
  }
}

TEST(form, survives_both_ways) {
  form_fields fields{{"a b", "c&d=e"}, {"ä", "%+/~"}, {"empty", ""}};
  auto text = encode_form(fields);
  EXPECT_EQ(text, "a%20b=c%26d%3De&%C3%A4=%25%2B%2F~&empty=");
  auto decoded = decode_form(text);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, (std::map<std::string, std::string>(fields.begin(), fields.end())));
}

TEST(form, takes_plus_and_bare_names) {
  auto decoded = decode_form("a=x+y&&b");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->at("a"), "x y");
  EXPECT_EQ(decoded->at("b"), "");
}

TEST(form, refuses_what_is_ambiguous) {
  for (auto text : {"a=1&a=2", "a=%", "a=%1", "a=%zz", "%4=1"}) {
    EXPECT_FALSE(decode_form(text)) << text;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) {
    many += "f" + std::to_string(i) + "=1&";
  }
  EXPECT_FALSE(decode_form(many));
}

} // namespace
} // namespace bulkhead
