#include "protocol/http_rules.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

incoming_request post() {
  return {"POST",
          "/mcp",
          {{"Host", "localhost:8080"},
           {"Content-Type", "application/json"},
           {"Accept", "application/json, text/event-stream"}},
          {},
          {}};
}

incoming_request with(incoming_request request, std::string_view name, std::string value) {
  std::erase_if(request.fields,
                [&](const http_field& field) { return same_name(field.name, name); });
  request.fields.push_back({std::string{name}, std::move(value)});
  return request;
}

incoming_request without(incoming_request request, std::string_view name) {
  std::erase_if(request.fields,
                [&](const http_field& field) { return same_name(field.name, name); });
  return request;
}

/// The status that the rules answer with; 0: they let the request pass.
std::uint32_t status(const incoming_request& request, const http_rules& rules = {}) {
  auto verdict = check_head(request, rules);
  return verdict ? 0 : verdict.error().status;
}

http_rules with_token() {
  http_rules rules;
  rules.authenticate = [](std::string_view token) -> tl::expected<std::string, outgoing_answer> {
    if (equal_secrets(token, "sesame")) {
      return "ali";
    }
    return tl::unexpected{refusal(401, -32600, "the token isn't valid")};
  };
  return rules;
}

TEST(http_rules, a_plain_post_passes_and_is_local) {
  EXPECT_EQ(check_head(post(), {}), "local");
}

TEST(http_rules, only_loopback_hosts_are_known_by_default) {
  for (const auto* host : {"localhost", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:80"}) {
    EXPECT_EQ(status(with(post(), "Host", host)), 0) << host;
  }
  for (const auto* host : {"evil.example.com", "localhost.evil.example", "127.0.0.1.nip.io:80",
                           "localhost:80:80", "localhost:x", "", "[::1", "0.0.0.0", "localhost."}) {
    EXPECT_EQ(status(with(post(), "Host", host)), 403) << host;
  }
}

TEST(http_rules, a_request_has_one_host) {
  EXPECT_EQ(status(without(post(), "Host")), 400);
  auto twice = post();
  twice.fields.push_back({"HOST", "localhost"});
  EXPECT_EQ(status(twice), 400);
}

TEST(http_rules, pages_of_other_origins_are_refused) {
  for (const auto* origin : {"http://localhost", "https://127.0.0.1:3000", "http://[::1]:8"}) {
    EXPECT_EQ(status(with(post(), "Origin", origin)), 0) << origin;
  }
  for (const auto* origin : {"http://evil.example.com", "null", "", "file://", "localhost",
                             "http://localhost@evil.example", "http://evil.example#localhost",
                             "https://localhost/", "ftp://localhost"}) {
    EXPECT_EQ(status(with(post(), "Origin", origin)), 403) << origin;
  }
}

TEST(http_rules, a_token_opens_and_names_its_holder) {
  auto rules = with_token();
  EXPECT_EQ(check_head(with(post(), "Authorization", "Bearer sesame"), rules), "ali");
  EXPECT_EQ(check_head(with(post(), "Authorization", "bearer   sesame "), rules), "ali");
  for (const auto* wrong : {"Bearer", "Bearer ", "Bearer sesam", "Bearer sesame2", "Basic sesame",
                            "sesame", "Bearer sesame sesame"}) {
    EXPECT_EQ(status(with(post(), "Authorization", wrong), rules), 401) << wrong;
  }
  auto twice = with(post(), "Authorization", "Bearer sesame");
  twice.fields.push_back({"authorization", "Bearer other"});
  EXPECT_EQ(status(twice, rules), 401);
}

TEST(http_rules, whoever_has_no_token_learns_nothing_else) {
  auto rules = with_token();
  EXPECT_EQ(status(post(), rules), 401);
  auto elsewhere = post();
  elsewhere.target = "/nowhere";
  EXPECT_EQ(status(elsewhere, rules), 401);
}

TEST(http_rules, the_refused_host_or_origin_is_named_and_where_to_allow_it) {
  auto text = [](const incoming_request& request) {
    auto verdict = check_head(request, {});
    return verdict ? std::string{} : verdict.error().body;
  };
  auto host = text(with(post(), "Host", "mcp.example.org:8080"));
  EXPECT_NE(host.find(R"(\"mcp.example.org:8080\")"), std::string::npos) << host;
  EXPECT_NE(host.find(R"(\"hosts\" in bulkhead.toml)"), std::string::npos) << host;
  auto origin = text(with(post(), "Origin", "https://app.example.org"));
  EXPECT_NE(origin.find(R"(\"https://app.example.org\")"), std::string::npos) << origin;
  auto odd = text(with(post(), "Host", "\x1b[31m" + std::string(5000, 'x')));
  EXPECT_EQ(odd.find('\x1b'), std::string::npos);
  EXPECT_LT(odd.size(), 500U);
}

TEST(http_rules, there_is_one_path) {
  auto request = post();
  request.target = "/mcp?token=x";
  EXPECT_EQ(status(request), 0);
  for (const auto* target : {"/", "/mcp/", "/MCP", "/mcp/..", "*", "http://localhost/mcp", ""}) {
    request.target = target;
    EXPECT_EQ(status(request), 404) << target;
  }
}

TEST(http_rules, other_methods_are_not_allowed) {
  for (const auto* method : {"PUT", "OPTIONS", "HEAD", "PATCH", "TRACE", "post"}) {
    auto request = post();
    request.method = method;
    EXPECT_EQ(status(request), 405) << method;
  }
  auto refused = post();
  refused.method = "PUT";
  auto verdict = check_head(refused, {});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().fields.back(), (http_field{"Allow", "POST, GET, DELETE"}));
}

TEST(http_rules, a_post_brings_json_in_utf8) {
  for (const auto* type : {"application/json", "Application/JSON; charset=utf-8",
                           "application/json;charset=\"UTF-8\"", "application/json; x=y"}) {
    EXPECT_EQ(status(with(post(), "Content-Type", type)), 0) << type;
  }
  for (const auto* type : {"text/plain", "application/json; charset=latin1",
                           "application/x-www-form-urlencoded", "application/jsonx", ""}) {
    EXPECT_EQ(status(with(post(), "Content-Type", type)), 415) << type;
  }
  EXPECT_EQ(status(without(post(), "Content-Type")), 415);
  EXPECT_EQ(status(with(post(), "Content-Encoding", "gzip")), 415);
}

TEST(http_rules, a_post_accepts_both_answers) {
  for (const auto* types :
       {"application/json,text/event-stream", "text/event-stream;q=0.5, application/json", "*/*",
        "application/*, text/*", "text/html, APPLICATION/json, TEXT/Event-Stream"}) {
    EXPECT_EQ(status(with(post(), "Accept", types)), 0) << types;
  }
  for (const auto* types : {"application/json", "text/event-stream", "", "text/*", "*"}) {
    EXPECT_EQ(status(with(post(), "Accept", types)), 406) << types;
  }
  EXPECT_EQ(status(without(post(), "Accept")), 406);
  auto in_two = with(post(), "Accept", "application/json");
  in_two.fields.push_back({"accept", "text/event-stream"});
  EXPECT_EQ(status(in_two), 0);
}

TEST(http_rules, a_get_asks_for_a_stream) {
  auto request = without(post(), "Content-Type");
  request.method = "GET";
  EXPECT_EQ(status(with(request, "Accept", "text/event-stream")), 0);
  EXPECT_EQ(status(with(request, "Accept", "text/html")), 406);
  request.method = "DELETE";
  EXPECT_EQ(status(without(request, "Accept")), 0);
}

http_rules with_pages() {
  auto rules = with_token();
  rules.pages = {{"/metrics"},
                 {"/healthz", {"GET"}, false},
                 {"/ui/"},
                 {"/ui/api/", {"GET", "POST", "DELETE"}},
                 {"/ui/login", {"POST"}, false}};
  return rules;
}

incoming_request ask(std::string method, std::string target, bool token = false) {
  incoming_request request{std::move(method), std::move(target), {{"Host", "localhost"}}, {}, {}};
  return token ? with(request, "Authorization", "Bearer sesame") : request;
}

TEST(http_rules, pages_are_found_by_path_and_by_the_longest_folder) {
  auto rules = with_pages();
  EXPECT_EQ(check_head(ask("GET", "/metrics?x=/healthz", true), rules), "ali");
  EXPECT_EQ(status(ask("GET", "/ui/", true), rules), 0);
  EXPECT_EQ(status(ask("GET", "/ui/style.css", true), rules), 0);
  EXPECT_EQ(status(ask("DELETE", "/ui/api/runs/1", true), rules), 0);
  // The exact one counts, though another is longer than its folder.
  EXPECT_EQ(status(ask("GET", "/ui/login", true), rules), 405);
  for (const auto* target : {"/metrics/", "/metricsx", "/ui", "/", "/UI/", "//metrics", "/u"}) {
    EXPECT_EQ(status(ask("GET", target, true), rules), 404) << target;
  }
}

TEST(http_rules, a_page_at_the_root_takes_what_is_left) {
  auto rules = with_pages();
  rules.pages.push_back({"/", {"GET"}, false});
  EXPECT_EQ(status(ask("GET", "/favicon.ico"), rules), 0);
  EXPECT_EQ(status(ask("GET", "/metrics"), rules), 401);
  EXPECT_EQ(status(ask("GET", "/mcp"), rules), 401);
}

TEST(http_rules, where_there_is_no_mcp_only_pages_are) {
  auto rules = with_pages();
  rules.path = {};
  EXPECT_EQ(status(ask("GET", "/metrics", true), rules), 0);
  for (const auto* target : {"/mcp", "", "?x=1"}) {
    auto request = with(post(), "Authorization", "Bearer sesame");
    request.target = target;
    EXPECT_EQ(status(request, rules), 404) << target;
  }
}

TEST(http_rules, pages_want_the_token_unless_they_are_public) {
  auto rules = with_pages();
  EXPECT_EQ(status(ask("GET", "/metrics"), rules), 401);
  EXPECT_EQ(status(ask("GET", "/nowhere"), rules), 401);
  // A token sent to a public page makes nobody of its holder.
  EXPECT_EQ(check_head(ask("GET", "/healthz"), rules), "");
  EXPECT_EQ(check_head(ask("GET", "/healthz", true), rules), "");
  rules.authenticate = nullptr;
  EXPECT_EQ(check_head(ask("GET", "/metrics"), rules), "local");
}

TEST(http_rules, pages_hold_hosts_and_origins_too) {
  auto rules = with_pages();
  for (const auto* target : {"/healthz", "/metrics"}) {
    EXPECT_EQ(status(with(ask("GET", target, true), "Host", "evil.example"), rules), 403);
    EXPECT_EQ(status(with(ask("GET", target, true), "Origin", "http://evil.example"), rules), 403);
    EXPECT_EQ(status(with(ask("GET", target, true), "Origin", "http://localhost"), rules), 0);
    EXPECT_EQ(status(without(ask("GET", target, true), "Host"), rules), 400);
  }
}

TEST(http_rules, pages_have_methods_and_head_goes_with_get) {
  auto rules = with_pages();
  EXPECT_EQ(status(ask("HEAD", "/metrics", true), rules), 0);
  auto refused = check_head(ask("PUT", "/ui/api/x", true), rules);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 405);
  EXPECT_EQ(refused.error().fields.back(), (http_field{"Allow", "GET, POST, DELETE"}));
  EXPECT_EQ(status(ask("HEAD", "/ui/login"), rules), 405);
  // A page's methods aren't MCP's.
  EXPECT_EQ(status(ask("HEAD", "/mcp", true), rules), 405);
}

TEST(http_rules, what_a_page_elsewhere_can_post_by_itself_is_refused) {
  auto rules = with_pages();
  auto request = with(ask("POST", "/ui/api/cancel", true), "Content-Type", "application/json");
  EXPECT_EQ(status(request, rules), 0);
  // Types that a form can send; and no type at all.
  for (const auto* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}) {
    EXPECT_EQ(status(with(request, "Content-Type", type), rules), 415) << type;
  }
  EXPECT_EQ(status(without(request, "Content-Type"), rules), 415);
  EXPECT_EQ(status(with(request, "Origin", "https://evil.example"), rules), 403);
  EXPECT_EQ(status(with(request, "Origin", "null"), rules), 403);
}

TEST(http_rules, a_refusal_is_an_error_without_an_id_unless_one_is_known) {
  EXPECT_EQ(refusal(400, -32600, "no \"x\"").body,
            R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"no \"x\""}})");
  EXPECT_EQ(refusal(400, -32600, "no", "7", "{}").body,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32600,\"message\":\"no\","
            "\"data\":{}}}\n");
}

TEST(http_rules, secrets_agree_as_a_whole) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "abcd"));
  EXPECT_FALSE(equal_secrets("abcd", "abc"));
  EXPECT_FALSE(equal_secrets(std::string_view{"abc\0", 4}, "abc"));
}

} // namespace
} // namespace bulkhead
