#include "protocol/http_redirect.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

web_url url(const std::string& text) {
  auto result = read_web_url(text, "URL");
  EXPECT_TRUE(result) << text;
  return result.value_or(web_url{});
}

TEST(http_redirect, a_shown_url_holds_no_secret) {
  EXPECT_EQ(shown_url(url("https://host:444/a/b?key=secret")), "https://host:444/a/b?…");
  EXPECT_EQ(shown_url(url("https://host/s/0123456789abcdef0123456789/mcp")),
            "https://host/s/…/mcp");
}

TEST(http_redirect, references_are_resolved) {
  auto base = url("https://host/a/b?c=d");
  auto resolve = [&](const char* text) {
    auto result = resolve_reference(base, text, "the endpoint");
    return result ? result->text() : result.error().message;
  };
  EXPECT_EQ(resolve("e?f"), "https://host/a/e?f");
  EXPECT_EQ(resolve("/e"), "https://host/e");
  EXPECT_EQ(resolve("?f=g"), "https://host/a/b?f=g");
  EXPECT_EQ(resolve("//other/e"), "https://other/e");
  EXPECT_EQ(resolve("http://other/e"), "http://other/e");
  EXPECT_EQ(resolve("../x"), "https://host/x");
  for (const char* bad : {"ftp://x/y", "javascript:alert(1)", "https://user:pw@host/"}) {
    EXPECT_FALSE(resolve_reference(base, bad, "the endpoint")) << bad;
  }
}

TEST(http_redirect, methods_and_bodies_follow_as_the_status_says) {
  auto from = url("https://host/a");
  auto other = follow_redirect(from, "POST", true, 303, "/b");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->method, "GET");
  EXPECT_FALSE(other->keeps_body);
  EXPECT_FALSE(other->foreign);
  auto same = follow_redirect(from, "POST", true, 308, "/b");
  ASSERT_TRUE(same);
  EXPECT_EQ(same->method, "POST");
  EXPECT_TRUE(same->keeps_body);
  EXPECT_EQ(follow_redirect(from, "POST", true, 302, "/b")->method, "GET");
  EXPECT_EQ(follow_redirect(from, "DELETE", false, 307, "/b")->method, "DELETE");
}

TEST(http_redirect, another_origin_gets_neither_body_nor_method) {
  auto from = url("https://host/a");
  for (const char* elsewhere : {"https://other/", "https://host:444/", "https://host.other/"}) {
    for (std::uint32_t status : {302U, 303U, 307U}) {
      EXPECT_EQ(follow_redirect(from, "POST", true, status, elsewhere).error().code, errc::denied);
    }
    EXPECT_EQ(follow_redirect(from, "DELETE", false, 308, elsewhere).error().code, errc::denied);
    auto got = follow_redirect(from, "GET", false, 307, elsewhere);
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->foreign);
  }
  EXPECT_EQ(follow_redirect(from, "GET", false, 301, "http://host/a").error().code, errc::denied);
  EXPECT_TRUE(follow_redirect(url("http://host/a"), "GET", false, 301, "https://host/a"));
}

TEST(http_redirect, only_harmless_headers_go_elsewhere) {
  for (const char* name :
       {"Authorization", "Cookie", "X-Api-Key", "Mcp-Session-Id", "Content-Type"}) {
    EXPECT_FALSE(is_harmless_header(name)) << name;
  }
  EXPECT_TRUE(is_harmless_header("Accept"));
}

} // namespace
} // namespace bulkhead
