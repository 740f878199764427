#include "protocol/oauth_login.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// A server at https://a.example/mcp, its authorization server at https://as.example, and a user.
struct world {
  std::map<std::string, std::pair<std::uint32_t, std::string>> pages;
  std::vector<oauth_exchange_request> asked;
  std::string opened;
  std::string answer = "code=CODE&state=r1";
  int randoms = 0;
  login_request request;

  world() {
    request.server = read_web_url("https://a.example/mcp", "a URL").value();
    pages["https://a.example/.well-known/oauth-protected-resource/mcp"] = {
        200, json{{"resource", "https://a.example/mcp"},
                  {"authorization_servers", {"https://as.example"}},
                  {"scopes_supported", {"read"}}}
                 .dump()};
    pages["https://as.example/.well-known/oauth-authorization-server"] = {200, issuer().dump()};
    pages["https://as.example/register"] = {201, R"({"client_id": "CLIENT"})"};
    pages["https://as.example/token"] = {
        200, R"({"access_token": "AT", "token_type": "Bearer", "expires_in": 60,
                 "refresh_token": "RT"})"};
  }

  static json issuer() {
    return {{"issuer", "https://as.example"},
            {"authorization_endpoint", "https://as.example/authorize"},
            {"token_endpoint", "https://as.example/token"},
            {"registration_endpoint", "https://as.example/register"},
            {"code_challenge_methods_supported", {"S256"}}};
  }

  expected<oauth_credential> run() {
    login_edges edges;
    edges.exchange = [this](const oauth_exchange_request& each) -> expected<oauth_exchange_answer> {
      asked.push_back(each);
      auto page = pages.find(each.url);
      if (page == pages.end()) {
        return oauth_exchange_answer{404, "<html>not here</html>"};
      }
      if (page->second.first == 0) {
        return fail(errc::unavailable, page->second.second);
      }
      return oauth_exchange_answer{page->second.first, page->second.second};
    };
    edges.random = [this] { return "r" + std::to_string(++randoms); };
    edges.now = [] { return std::chrono::system_clock::time_point{1000s}; };
    edges.redirect_uri = "http://127.0.0.1:7/callback";
    edges.authorize = [this](const std::string& url,
                             const authorization_attempt&) -> expected<std::string> {
      opened = url;
      return answer;
    };
    return log_in(request, edges);
  }

  std::vector<std::string> urls() const {
    std::vector<std::string> result;
    std::transform(asked.begin(), asked.end(), std::back_inserter(result),
                   [](const auto& each) { return each.url; });
    return result;
  }

  std::map<std::string, std::string> opened_fields() const {
    return decode_form(opened.substr(opened.find('?') + 1)).value();
  }
};

TEST(login, goes_from_a_url_to_tokens) {
  world w;
  auto credential = w.run();
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->url, "https://a.example/mcp");
  EXPECT_EQ(credential->issuer, "https://as.example");
  EXPECT_EQ(credential->client.id, "CLIENT");
  EXPECT_EQ(credential->access_token, "AT");
  EXPECT_EQ(credential->refresh_token, "RT");
  EXPECT_EQ(credential->expires, 1060);
  EXPECT_EQ(credential->scopes, (std::vector<std::string>{"read"}));
  EXPECT_EQ(w.urls(),
            (std::vector<std::string>{"https://a.example/.well-known/oauth-protected-resource/mcp",
                                      "https://as.example/.well-known/oauth-authorization-server",
                                      "https://as.example/register", "https://as.example/token"}));
  auto fields = w.opened_fields();
  EXPECT_EQ(fields["resource"], "https://a.example/mcp");
  EXPECT_EQ(fields["scope"], "read");
  auto form = decode_form(w.asked.back().body).value();
  EXPECT_EQ(form["code"], "CODE");
  EXPECT_EQ(form["resource"], "https://a.example/mcp");
  EXPECT_EQ(code_challenge(form["code_verifier"]), fields["code_challenge"]);
}

TEST(login, asks_the_public_internet_alone_but_for_the_servers_own_host) {
  world w;
  ASSERT_TRUE(w.run());
  for (const auto& each : w.asked) {
    EXPECT_EQ(each.public_only, !each.url.starts_with("https://a.example/")) << each.url;
  }
  w.asked.clear();
  w.request.private_network = true;
  w.randoms = 0;
  ASSERT_TRUE(w.run());
  for (const auto& each : w.asked) {
    EXPECT_FALSE(each.public_only) << each.url;
  }
}

TEST(login, takes_the_metadata_that_the_challenge_names) {
  world w;
  auto page = w.pages.extract("https://a.example/.well-known/oauth-protected-resource/mcp");
  page.key() = "https://a.example/own.json";
  w.pages.insert(std::move(page));
  w.request.challenge = {"https://a.example/own.json", {"write"}, {}};
  auto credential = w.run();
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(w.urls().front(), "https://a.example/own.json");
  EXPECT_EQ(w.opened_fields()["scope"], "write");
}

TEST(login, refuses_metadata_that_lies_in_a_private_network) {
  for (auto place : {"http://169.254.169.254/latest", "https://10.0.0.1/m", "http://127.0.0.1:1/m",
                     "http://a.example/m", "file:///etc/passwd"}) {
    world w;
    w.request.challenge.resource_metadata = place;
    EXPECT_FALSE(w.run()) << place;
    EXPECT_TRUE(w.asked.empty()) << place;
  }
  for (auto issuer : {"http://127.0.0.1:1", "https://192.168.1.1", "http://as.example"}) {
    world w;
    w.pages["https://a.example/.well-known/oauth-protected-resource/mcp"].second =
        json{{"resource", "https://a.example/mcp"}, {"authorization_servers", {issuer}}}.dump();
    EXPECT_EQ(w.run().error().code, errc::denied) << issuer;
    EXPECT_EQ(w.asked.size(), 1u) << issuer;
  }
}

TEST(login, looks_for_metadata_at_the_root_then_takes_the_server_for_its_own_issuer) {
  world w;
  w.pages.erase("https://a.example/.well-known/oauth-protected-resource/mcp");
  auto document = world::issuer();
  document["issuer"] = "https://a.example";
  w.pages["https://a.example/.well-known/oauth-authorization-server"] = {200, document.dump()};
  auto credential = w.run();
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->resource, "https://a.example/mcp");
  EXPECT_EQ(w.urls()[1], "https://a.example/.well-known/oauth-protected-resource");
}

TEST(login, finds_openid_metadata) {
  world w;
  auto page = w.pages.extract("https://as.example/.well-known/oauth-authorization-server");
  page.key() = "https://as.example/.well-known/openid-configuration";
  w.pages.insert(std::move(page));
  // A page for people in its place isn't metadata.
  w.pages["https://as.example/.well-known/oauth-authorization-server"] = {200, "<html>"};
  EXPECT_TRUE(w.run());
}

TEST(login, takes_the_next_authorization_server_when_one_is_gone) {
  world w;
  w.pages["https://a.example/.well-known/oauth-protected-resource/mcp"].second = json{
      {"resource", "https://a.example/mcp"},
      {"authorization_servers", {"https://gone.example", "https://as.example"}}}.dump();
  auto credential = w.run();
  ASSERT_TRUE(credential);
  EXPECT_EQ(credential->issuer, "https://as.example");
}

TEST(login, says_when_a_server_has_no_oauth) {
  world w;
  w.pages.clear();
  auto failure = w.run().error();
  EXPECT_EQ(failure.code, errc::unavailable);
  EXPECT_NE(failure.message.find("https://a.example"), std::string::npos);
  EXPECT_TRUE(w.opened.empty());
}

TEST(login, opens_nothing_for_metadata_that_does_not_fit) {
  {
    world w;
    w.pages["https://a.example/.well-known/oauth-protected-resource/mcp"].second = json{
        {"resource", "https://evil.example/mcp"},
        {"authorization_servers", {"https://as.example"}}}.dump();
    EXPECT_EQ(w.run().error().code, errc::denied);
    EXPECT_TRUE(w.opened.empty());
  }
  for (auto [key, value] : {std::pair<const char*, json>{"issuer", "https://evil.example"},
                            {"code_challenge_methods_supported", json::array({"plain"})},
                            {"authorization_endpoint", "javascript:alert(1)"},
                            {"token_endpoint", "http://as.example/token"}}) {
    world w;
    auto document = world::issuer();
    document[key] = value;
    w.pages["https://as.example/.well-known/oauth-authorization-server"].second = document.dump();
    EXPECT_FALSE(w.run()) << key;
    EXPECT_TRUE(w.opened.empty()) << key;
  }
}

TEST(login, sends_no_code_after_an_answer_that_does_not_fit) {
  for (auto answer : {"code=CODE&state=other", "code=CODE&state=r1&iss=https://evil.example",
                      "error=access_denied&state=r1", "state=r1"}) {
    world w;
    w.answer = answer;
    EXPECT_FALSE(w.run()) << answer;
    EXPECT_NE(w.urls().back(), "https://as.example/token") << answer;
  }
}

TEST(login, uses_a_known_client_and_registers_none) {
  world w;
  w.request.client = {"MINE", "SECRET", ""};
  auto credential = w.run();
  ASSERT_TRUE(credential);
  EXPECT_EQ(credential->client, (oauth_client{"MINE", "SECRET", client_auth::secret_basic}));
  auto urls = w.urls();
  EXPECT_EQ(std::count(urls.begin(), urls.end(), "https://as.example/register"), 0);
  auto& headers = w.asked.back().headers;
  EXPECT_TRUE(std::any_of(headers.begin(), headers.end(), [](const auto& each) {
    return each.first == "Authorization" && each.second.starts_with("Basic ");
  }));
}

TEST(login, keeps_what_was_granted_before) {
  world w;
  w.request.challenge.scopes = {"write"};
  w.request.granted = {"read"};
  ASSERT_TRUE(w.run());
  EXPECT_EQ(w.opened_fields()["scope"], "write read");
}

TEST(login, says_which_step_failed) {
  for (auto place : {"https://as.example/register", "https://as.example/token"}) {
    world w;
    w.pages[place] = {0, "no connection"};
    auto failure = w.run().error();
    EXPECT_EQ(failure.code, errc::unavailable);
    EXPECT_NE(failure.message.find(place), std::string::npos);
    EXPECT_NE(failure.message.find("no connection"), std::string::npos);
  }
  world w;
  w.pages["https://as.example/token"] = {400, R"({"error": "invalid_grant"})"};
  EXPECT_EQ(w.run().error().code, errc::denied);
}

} // namespace
} // namespace bulkhead
