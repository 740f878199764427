#include "protocol/tenant_token.hpp"

#include <gtest/gtest.h>

#include "protocol/time_text.hpp"
#include "protocol/token_edit.hpp"

namespace bulkhead {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::sys_seconds noon{1'800'000'000s};

std::string random_bytes(char first) {
  std::string bytes(token_random_bytes, '\xfb');
  bytes[0] = first;
  return bytes;
}

serve_config two_tenants() {
  serve_config config;
  config.tenants.resize(2);
  config.tenants[0].name = "ali";
  config.tenants[0].tokens = {
      {"laptop", token_hash(make_token(random_bytes('a'))), std::nullopt},
      {"ci", token_hash(make_token(random_bytes('b'))), noon},
  };
  config.tenants[1].name = "bob";
  config.tenants[1].tokens = {{"laptop", token_hash(make_token(random_bytes('c'))), std::nullopt}};
  return config;
}

TEST(tenant_token, form) {
  auto token = make_token(random_bytes('a'));
  EXPECT_EQ(token.size(), 46U);
  EXPECT_EQ(token.substr(0, 3), "bh_");
  EXPECT_EQ(token.find_first_of("+/="), std::string::npos) << token;
  EXPECT_TRUE(looks_like_token(token));
  EXPECT_NE(token, make_token(random_bytes('b')));
  for (const auto& other :
       {std::string{}, std::string{"bh_"}, token + "a", token.substr(0, 45),
        "bx_" + token.substr(3), token.substr(0, 45) + "=", token.substr(0, 45) + '\0'}) {
    EXPECT_FALSE(looks_like_token(other)) << other;
  }
}

TEST(tenant_token, the_hash_is_sha256) {
  EXPECT_EQ(token_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(tenant_token, holders) {
  token_book book{two_tenants()};
  auto holder = [&](char first) { return book.find(make_token(random_bytes(first)), noon - 1s); };
  EXPECT_EQ(holder('a'), (token_holder{"ali", "laptop"}));
  EXPECT_EQ(holder('b'), (token_holder{"ali", "ci"}));
  EXPECT_EQ(holder('c'), (token_holder{"bob", "laptop"}));
  EXPECT_FALSE(holder('d'));
  EXPECT_FALSE(book.find("", noon));
  EXPECT_FALSE(book.find(two_tenants().tenants[0].tokens[0].sha256, noon))
      << "the hash that is stored opens nothing";
  EXPECT_FALSE(token_book{}.find(make_token(random_bytes('a')), noon));
}

TEST(tenant_token, expiry) {
  token_book book{two_tenants()};
  auto token = make_token(random_bytes('b'));
  EXPECT_TRUE(book.find(token, noon - 1s));
  EXPECT_FALSE(book.find(token, noon)) << "from that moment on";
}

TEST(tenant_token, the_book_is_replaced_for_whoever_asks_next) {
  current_tokens tokens{token_book{two_tenants()}};
  auto token = make_token(random_bytes('a'));
  auto held = tokens.get();
  tokens.set(token_book{});
  EXPECT_FALSE(tokens.get()->find(token, noon));
  EXPECT_TRUE(held->find(token, noon));
}

TEST(tenant_token, times) {
  EXPECT_EQ(parse_span("90s"), 90s);
  EXPECT_EQ(parse_span("2w"), 336h);
  for (const auto* text : {"", "5", "d", "-1d", "1.5h", "1y", "100000001s", "1 d"}) {
    EXPECT_FALSE(parse_span(text)) << text;
  }
  EXPECT_EQ(moment_text(*parse_moment("2027-01-15T08:00")), "2027-01-15T08:00:00Z");
  EXPECT_EQ(moment_text(*parse_moment("2400-02-29Z")), "2400-02-29T00:00:00Z");
  for (const auto* text : {"", "2027", "2027-02-29", "2027-01-15T25:00", "2027-01-15 8:00"}) {
    EXPECT_FALSE(parse_moment(text)) << text;
  }
}

const std::string file = "/etc/bulkhead.toml";
const std::string hash_a(64, 'a');
const std::string hash_b(64, 'b');
const std::string hash_c(64, 'c');
const tenant_token fresh{"new", hash_c, std::nullopt};
const std::string fresh_text = "{ id = \"new\", sha256 = \"" + hash_c + "\" }";

std::string token_text(const std::string& id, const std::string& hash) {
  return "{ id = \"" + id + "\", sha256 = \"" + hash + "\" }";
}

const auto token_a = token_text("a", hash_a);
const auto token_b = token_text("b", hash_b);

/// A text with a token more, or why it can't be.
std::string added(const std::string& text, const std::string& tenant = "ali") {
  auto result = add_token(text, file, tenant, fresh);
  return result ? *result : std::string{to_string(result.error().code)};
}

std::string removed(const std::string& text, const std::string& id = "a") {
  auto result = remove_token(text, file, "ali", id);
  return result ? *result : std::string{to_string(result.error().code)};
}

TEST(token_edit, the_first_token_of_a_tenant) {
  EXPECT_EQ(added("# Mine.\n[tenants.ali] # him\nimage = \"data\"\n[tenants.bob]\n"),
            "# Mine.\n[tenants.ali] # him\ntokens = [\n  " + fresh_text +
                ",\n]\nimage = \"data\"\n[tenants.bob]\n");
  EXPECT_EQ(added("[tenants.ali]"), "[tenants.ali]\ntokens = [\n  " + fresh_text + ",\n]");
  EXPECT_EQ(added("[tenants.ali]\ntokens = []\n"),
            "[tenants.ali]\ntokens = [\n  " + fresh_text + ",\n]\n");
  auto apart = "[[tenants.ali.tokens]]\nid = \"new\"\nsha256 = \"" + hash_c + "\"\n";
  EXPECT_EQ(added("[tenants.ali.limits]\npids = 64\n"),
            "[tenants.ali.limits]\npids = 64\n\n" + apart);
}

TEST(token_edit, one_more_token) {
  EXPECT_EQ(added("[tenants.ali]\ntokens = [" + token_a + "] # his\n"),
            "[tenants.ali]\ntokens = [" + token_a + ", " + fresh_text + "] # his\n");
  EXPECT_EQ(added("[tenants.ali]\ntokens = [" + token_a + ",]\n"),
            "[tenants.ali]\ntokens = [" + token_a + ", " + fresh_text + "]\n");
  EXPECT_EQ(added("[tenants.ali]\ntokens = [\n    " + token_a + ", # one, two\n]\n"),
            "[tenants.ali]\ntokens = [\n    " + token_a + ", # one, two\n    " + fresh_text +
                ",\n]\n");
  EXPECT_EQ(added("[tenants.ali]\ntokens = [\n\t" + token_a + " # ä, no comma\n]\n"),
            "[tenants.ali]\ntokens = [\n\t" + token_a + ", # ä, no comma\n\t" + fresh_text +
                ",\n]\n");
  auto block = "[[tenants.ali.tokens]]\nid = \"a\"\nsha256 = \"" + hash_a + "\"\n";
  EXPECT_EQ(added("[tenants.ali]\n" + block),
            "[tenants.ali]\n" + block + "\n[[tenants.ali.tokens]]\nid = \"new\"\nsha256 = \"" +
                hash_c + "\"\n");
  EXPECT_EQ(added("tenants = { ali = { image = \"ö\", tokens = [" + token_a + "] } }"),
            "tenants = { ali = { image = \"ö\", tokens = [" + token_a + ", " + fresh_text +
                "] } }");
}

TEST(token_edit, what_can_not_be_added) {
  EXPECT_EQ(added("[tenants.bob]\n"), "not_found");
  EXPECT_EQ(added("[tenants.ali]\ntokens = [" + token_text("new", hash_a) + "]"),
            "invalid_argument");
  EXPECT_EQ(added("[tenants.ali\n"), "malformed");
  EXPECT_EQ(added("[tenants.ali]\nx = 1\n"), "invalid_argument");
  EXPECT_EQ(added("tenants = { ali = {} }"), "unavailable") << "one line that can't be extended";
  EXPECT_EQ(added("[tenants.ali]\n[tenants.bob]\ntokens = [" + token_text("x", hash_c) + "]\n"),
            "unavailable")
      << "the hash is another's";
}

TEST(token_edit, removal) {
  EXPECT_EQ(removed("[tenants.ali]\ntokens = [" + token_a + "] # his\n"),
            "[tenants.ali]\ntokens = [] # his\n");
  EXPECT_EQ(removed("[tenants.ali]\ntokens = [" + token_a + ", " + token_b + "]\n"),
            "[tenants.ali]\ntokens = [" + token_b + "]\n");
  EXPECT_EQ(removed("[tenants.ali]\ntokens = [" + token_b + ", " + token_a + "]\n"),
            "[tenants.ali]\ntokens = [" + token_b + "]\n");
  EXPECT_EQ(removed("[tenants.ali]\ntokens = [\n  " + token_b + ", # b\n  " + token_a +
                    ", # a\n  # end\n]\n"),
            "[tenants.ali]\ntokens = [\n  " + token_b + ", # b\n  # end\n]\n");
  auto block = [](const std::string& id, const std::string& hash) {
    return "[[tenants.ali.tokens]]\nid = \"" + id + "\"\nsha256 = \"" + hash + "\"\n";
  };
  EXPECT_EQ(removed("[tenants.ali]\n\n" + block("a", hash_a) + "\n# of b\n" + block("b", hash_b)),
            "[tenants.ali]\n\n# of b\n" + block("b", hash_b));
  EXPECT_EQ(removed("[tenants.ali]\n\n" + block("b", hash_b) + "\n" + block("a", hash_a)),
            "[tenants.ali]\n\n" + block("b", hash_b));
  EXPECT_EQ(removed("[tenants.ali]\n"), "not_found");
  EXPECT_EQ(removed("[tenants.bob]\n"), "not_found");
}

TEST(token_edit, change) {
  auto changed = [](const std::string& text, std::optional<std::chrono::sys_seconds> expires) {
    auto result = change_token(text, file, "ali", {"a", hash_c, expires});
    return result ? *result : std::string{to_string(result.error().code)};
  };
  auto before =
      "[tenants.ali]\ntokens = [" + token_b + ", { sha256 = '" + hash_a + "', id = \"a\" }]";
  EXPECT_EQ(changed(before, std::nullopt), "[tenants.ali]\ntokens = [" + token_b +
                                               ", { sha256 = \"" + hash_c + "\", id = \"a\" }]");
  EXPECT_EQ(changed(before, noon), "[tenants.ali]\ntokens = [" + token_b + ", { sha256 = \"" +
                                       hash_c +
                                       "\", id = \"a\", expires = 2027-01-15T08:00:00Z }]");
  auto block = "[tenants.ali]\n[[tenants.ali.tokens]]\nid = \"a\"\nexpires = 2026-01-01 # soon\n"
               "sha256 = \"";
  EXPECT_EQ(changed(block + hash_a + "\" # hash\n", noon),
            "[tenants.ali]\n[[tenants.ali.tokens]]\nid = \"a\"\nexpires = 2027-01-15T08:00:00Z # "
            "soon\nsha256 = \"" +
                hash_c + "\" # hash\n");
  EXPECT_EQ(changed("[[tenants.ali.tokens]]\nid = \"a\"\nsha256 = \"" + hash_a + "\"", noon),
            "[[tenants.ali.tokens]]\nid = \"a\"\nsha256 = \"" + hash_c +
                "\"\nexpires = 2027-01-15T08:00:00Z");
  EXPECT_EQ(changed("[tenants.ali]", noon), "not_found");
}

TEST(token_edit, a_new_tenant) {
  EXPECT_EQ(*add_tenant("", file, "ali"), "[tenants.ali]\n");
  EXPECT_EQ(*add_tenant("[tenants.bob]", file, "ali"), "[tenants.bob]\n\n[tenants.ali]\n");
  EXPECT_EQ(add_tenant("[tenants.ali]", file, "ali").error().code, errc::invalid_argument);
  EXPECT_EQ(add_tenant("", file, "../x").error().code, errc::invalid_argument);
  EXPECT_EQ(add_tenant("tenants = {}", file, "ali").error().code, errc::unavailable);
}

/// Whatever the layout, nothing but the tokens changes: line ends of Windows, a mark at the begin.
TEST(token_edit, odd_files) {
  for (const auto& text :
       {std::string{"\xEF\xBB\xBF[tenants.ali]\r\nimage = \"data\"\r\n"},
        "[tenants.ali]\r\ntokens = [\r\n  " + token_a + ",\r\n]\r\n",
        std::string{"listen = \"127.0.0.1:1\" # ☂ é\ntenants.ali.image = \"ü\"\n"},
        "[tenants]\nali.image = \"data\"\nali.tokens = [" + token_a + "]\n"}) {
    auto more = add_token(text, file, "ali", fresh);
    ASSERT_TRUE(more) << text << more.error().message;
    auto less = remove_token(*more, file, "ali", "new");
    ASSERT_TRUE(less) << *more << less.error().message;
    auto before = read_serve_config(text, file, {});
    auto after = read_serve_config(*less, file, {});
    EXPECT_EQ(*before, *after);
  }
}

} // namespace
} // namespace bulkhead
