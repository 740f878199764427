#include <algorithm>

#include "protocol/oauth_client.hpp"
#include "protocol/oauth_metadata.hpp"
#include "protocol/oauth_token.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

constexpr std::string_view issuer = "https://login.example/tenant";

void check_resource(std::string_view json) {
  const auto server = read_web_url("https://mcp.example/one/mcp", "a URL");
  require(server.has_value(), "the server is a URL");
  auto read = read_resource_metadata(json, *server);
  if (!read) {
    require_message(read.error().message);
    return;
  }
  auto resource = read_web_url(read->resource, "a URL");
  require(resource && resource_covers(*resource, *server), "a token is for the server that asks");
  require(!read->issuers.empty() && read->issuers.size() <= 64, "there is an issuer");
  for (const auto& url : resource_metadata_urls(*resource, {})) {
    require(read_web_url(url, "a URL").has_value(), "metadata lies at a URL");
  }
}

/// Answers the metadata, if it may be used.
std::optional<issuer_metadata> check_issuer(std::string_view json, bool loopback) {
  auto read = read_issuer_metadata(json, std::string{issuer}, loopback);
  if (!read) {
    require_message(read.error().message);
    return {};
  }
  require(read->issuer == issuer, "the metadata is of the issuer that was asked");
  for (const auto& endpoint : {read->authorization_endpoint, read->token_endpoint}) {
    require(!endpoint.empty(), "what is needed is there");
  }
  for (const auto& endpoint : {read->authorization_endpoint, read->token_endpoint,
                               read->registration_endpoint, read->revocation_endpoint}) {
    auto url = read_web_url(endpoint, "a URL");
    require(endpoint.empty() || (url && (url->is_https() || url->is_loopback()) &&
                                 (loopback || !url->is_private())),
            "secrets go to nobody on the way, and to nobody nearby");
  }
  return std::move(*read);
}

void check_token(std::uint32_t status, std::string_view json) {
  auto grant = read_token_answer(status, json);
  if (!grant) {
    require_message(grant.error().reason.message);
    return;
  }
  require(status == 200, "an error gives no token");
  const auto& token = grant->access_token;
  require(!token.empty() &&
              std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
          "a header can hold the token");
  require(!grant->lifetime || (grant->lifetime->count() >= 0 &&
                               *grant->lifetime <= std::chrono::hours{24 * 366 * 10}),
          "a lifetime is one");
}

void check_registration(std::string_view json, const issuer_metadata& from) {
  auto client = read_registration(201, json, from);
  if (!client) {
    require_message(client.error().message);
    return;
  }
  require(!client->id.empty(), "a client has an id");
  require(client->method == client_auth::none || !client->secret.empty(),
          "who shows a secret has one");
  auto request = authenticated({{"grant_type", "x"}}, *client);
  auto fields = decode_form(request.body);
  require(fields && fields->at("grant_type") == "x", "a request is a form");
  require((client->method == client_auth::secret_basic) == !request.authorization.empty(),
          "the header has who shows a secret by it");
}

} // namespace

void oauth_documents_target(std::string_view input) {
  check_resource(input);
  check_issuer(input, true);
  check_registration(input, check_issuer(input, false).value_or(issuer_metadata{}));
  check_token(200, input);
  check_token(400, input);
  auto refusal = oauth_refusal(400, input);
  require(is_utf8(refusal) && refusal.find('\x1b') == std::string::npos &&
              refusal.find('\n') == std::string::npos,
          "a refusal is a line for people");
}

} // namespace bulkhead::fuzz
