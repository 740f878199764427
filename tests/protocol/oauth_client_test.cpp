#include "protocol/oauth_client.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

issuer_metadata issuer(std::vector<std::string> methods = {}) {
  issuer_metadata result;
  result.issuer = "https://as.example";
  result.token_auth_methods = std::move(methods);
  return result;
}

TEST(registration, is_chosen_in_the_order_that_mcp_prefers) {
  known_client known{"by-hand", "", "https://me.example/client.json"};
  auto server = issuer();
  server.client_id_documents = true;
  server.registration_endpoint = "https://as.example/register";
  EXPECT_EQ(choose_registration(known, server), registration::known);
  known.id.clear();
  EXPECT_EQ(choose_registration(known, server), registration::document);
  EXPECT_EQ(made_client(known, registration::document, server),
            (oauth_client{"https://me.example/client.json", "", client_auth::none}));
  server.client_id_documents = false;
  EXPECT_EQ(choose_registration(known, server), registration::dynamic);
  known.document_url.clear();
  server.client_id_documents = true;
  EXPECT_EQ(choose_registration(known, server), registration::dynamic);
  server.registration_endpoint.clear();
  auto none = choose_registration(known, server);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("--client-id"), std::string::npos);
}

TEST(known_client, shows_its_secret_as_the_server_takes_it) {
  auto method = [](std::string secret, std::vector<std::string> offered) {
    return made_client({"id", std::move(secret), ""}, registration::known,
                       issuer(std::move(offered)))
        .method;
  };
  EXPECT_EQ(method("", {"client_secret_basic"}), client_auth::none);
  EXPECT_EQ(method("s", {}), client_auth::secret_basic);
  EXPECT_EQ(method("s", {"none", "client_secret_post", "client_secret_basic"}),
            client_auth::secret_basic);
  EXPECT_EQ(method("s", {"client_secret_post"}), client_auth::secret_post);
  EXPECT_EQ(method("s", {"private_key_jwt"}), client_auth::secret_basic);
}

TEST(registration_request, is_that_of_a_native_application) {
  auto request = json::parse(
      registration_request(issuer({"none"}), "http://127.0.0.1:7/callback", {"a", "b"}));
  EXPECT_EQ(request["redirect_uris"], json({"http://127.0.0.1:7/callback"}));
  EXPECT_EQ(request["grant_types"], json({"authorization_code", "refresh_token"}));
  EXPECT_EQ(request["application_type"], "native");
  EXPECT_EQ(request["token_endpoint_auth_method"], "none");
  EXPECT_EQ(request["scope"], "a b");
  auto method = [](std::vector<std::string> offered) {
    return json::parse(
        registration_request(issuer(std::move(offered)), "x", {}))["token_endpoint_auth_method"];
  };
  EXPECT_EQ(method({}), "none");
  EXPECT_EQ(method({"client_secret_post"}), "client_secret_post");
  EXPECT_EQ(method({"client_secret_basic", "client_secret_post"}), "client_secret_basic");
}

TEST(registration_answer, is_read) {
  auto read = [](const json& body, std::vector<std::string> offered = {}) {
    return read_registration(201, body.dump(), issuer(std::move(offered)));
  };
  EXPECT_EQ(read({{"client_id", "c"}}), (oauth_client{"c", "", client_auth::none}));
  EXPECT_EQ(read({{"client_id", "c"}, {"client_secret", "s"}}, {"client_secret_post"}),
            (oauth_client{"c", "s", client_auth::secret_post}));
  EXPECT_EQ(read({{"client_id", "c"}, {"client_secret", "s"}}, {"none"}),
            (oauth_client{"c", "s", client_auth::none}));
  EXPECT_EQ(read({{"client_id", "c"},
                  {"client_secret", "s"},
                  {"token_endpoint_auth_method", "client_secret_post"}},
                 {"client_secret_basic"}),
            (oauth_client{"c", "s", client_auth::secret_post}));
  EXPECT_EQ(read({{"client_secret", "s"}}).error().code, errc::malformed);
  EXPECT_EQ(
      read({{"client_id", "c"}, {"token_endpoint_auth_method", "client_secret_post"}}).error().code,
      errc::malformed);
}

TEST(registration_answer, tells_why_it_was_refused) {
  auto result = read_registration(
      400, R"({"error": "invalid_redirect_uri", "error_description": "no \u001b[1mloopback"})",
      issuer());
  EXPECT_EQ(result.error().code, errc::denied);
  EXPECT_NE(result.error().message.find("invalid_redirect_uri"), std::string::npos);
  EXPECT_EQ(result.error().message.find('\x1b'), std::string::npos);
}

TEST(token_form, shows_who_the_client_is) {
  auto none = authenticated({{"a", "1"}}, {"c d", "", client_auth::none});
  EXPECT_EQ(none.body, "a=1&client_id=c%20d");
  EXPECT_TRUE(none.authorization.empty());
  auto post = authenticated({{"a", "1"}}, {"c", "s&", client_auth::secret_post});
  EXPECT_EQ(post.body, "a=1&client_id=c&client_secret=s%26");
  EXPECT_TRUE(post.authorization.empty());
  auto basic = authenticated({{"a", "1"}}, {"c:d", "s ", client_auth::secret_basic});
  EXPECT_EQ(basic.body, "a=1");
  EXPECT_EQ(decode_base64(basic.authorization.substr(6)), "c%3Ad:s%20");
}

} // namespace
} // namespace bulkhead
