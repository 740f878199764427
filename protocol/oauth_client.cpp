#include "protocol/oauth_client.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"
#include "protocol/oauth_token.hpp"

namespace bulkhead {

namespace {

constexpr std::array<std::pair<client_auth, std::string_view>, 3> method_names = {{
    {client_auth::none, "none"},
    {client_auth::secret_post, "client_secret_post"},
    {client_auth::secret_basic, "client_secret_basic"},
}};

bool offers(const issuer_metadata& issuer, client_auth method) {
  const auto& offered = issuer.token_auth_methods;
  return std::find(offered.begin(), offered.end(), to_string(method)) != offered.end();
}

/// How a client with such a secret shows who it is. RFC 8414, 2: what isn't said means basic.
client_auth method_for(const std::string& secret, const issuer_metadata& issuer) {
  if (secret.empty()) {
    return client_auth::none;
  }
  if (offers(issuer, client_auth::secret_basic) || issuer.token_auth_methods.empty()) {
    return client_auth::secret_basic;
  }
  if (offers(issuer, client_auth::secret_post)) {
    return client_auth::secret_post;
  }
  return offers(issuer, client_auth::none) ? client_auth::none : client_auth::secret_basic;
}

/// What to ask for in a registration: a native application can't keep a secret, so none if it may.
client_auth wanted_method(const issuer_metadata& issuer) {
  if (offers(issuer, client_auth::none) || issuer.token_auth_methods.empty()) {
    return client_auth::none;
  }
  return offers(issuer, client_auth::secret_basic) || !offers(issuer, client_auth::secret_post)
             ? client_auth::secret_basic
             : client_auth::secret_post;
}

} // namespace

std::string_view to_string(client_auth method) {
  return std::find_if(method_names.begin(), method_names.end(),
                      [&](const auto& each) { return each.first == method; })
      ->second;
}

expected<registration> choose_registration(const known_client& known,
                                           const issuer_metadata& issuer) {
  if (!known.id.empty()) {
    return registration::known;
  }
  if (issuer.client_id_documents && !known.document_url.empty()) {
    return registration::document;
  }
  if (!issuer.registration_endpoint.empty()) {
    return registration::dynamic;
  }
  return fail(errc::unavailable,
              fmt::format("the authorization server {} registers no clients by itself; register "
                          "one there by hand, with the redirect URI http://127.0.0.1/callback, "
                          "and give its id with --client-id (a secret, if it has one, in the "
                          "variable BULKHEAD_CLIENT_SECRET)",
                          issuer.issuer));
}

oauth_client made_client(const known_client& known, registration how,
                         const issuer_metadata& issuer) {
  if (how == registration::document) {
    return {known.document_url, {}, client_auth::none};
  }
  return {known.id, known.secret, method_for(known.secret, issuer)};
}

std::string registration_request(const issuer_metadata& issuer, const std::string& redirect_uri,
                                 const std::vector<std::string>& scopes) {
  nlohmann::json request = {{"client_name", "Bulkhead"},
                            {"redirect_uris", {redirect_uri}},
                            {"grant_types", {"authorization_code", "refresh_token"}},
                            {"response_types", {"code"}},
                            {"token_endpoint_auth_method", to_string(wanted_method(issuer))},
                            {"application_type", "native"}};
  if (!scopes.empty()) {
    request["scope"] = scope_text(scopes);
  }
  return request.dump();
}

expected<oauth_client> read_registration(std::uint32_t status, std::string_view body,
                                         const issuer_metadata& issuer) {
  if (status != 200 && status != 201) {
    return fail(errc::denied, fmt::format("the authorization server {} refuses to register a "
                                          "client: {}; one that was registered by hand can be "
                                          "given with --client-id",
                                          issuer.issuer, oauth_refusal(status, body)));
  }
  auto document = read_oauth_document(body, "the answer to a client's registration");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  oauth_client result{text_member(*document, "client_id"), text_member(*document, "client_secret"),
                      client_auth::none};
  if (result.id.empty()) {
    return fail(errc::malformed, "the answer to a client's registration has no client_id");
  }
  result.method = method_for(result.secret, issuer);
  auto named = text_member(*document, "token_endpoint_auth_method");
  for (const auto& [method, name] : method_names) {
    if (name == named) {
      result.method = method;
    }
  }
  if (result.method != client_auth::none && result.secret.empty()) {
    return fail(
        errc::malformed,
        fmt::format("the answer to a client's registration says {} without a secret", named));
  }
  return result;
}

token_request authenticated(form_fields fields, const oauth_client& client) {
  token_request result;
  if (client.method == client_auth::secret_basic) {
    // RFC 6749, 2.3.1: both are form-encoded before they are put together.
    result.authorization = "Basic " + encode_base64(encode_form_text(client.id) + ":" +
                                                    encode_form_text(client.secret));
  } else {
    fields.emplace_back("client_id", client.id);
    if (client.method == client_auth::secret_post) {
      fields.emplace_back("client_secret", client.secret);
    }
  }
  result.body = encode_form(fields);
  return result;
}

} // namespace bulkhead
