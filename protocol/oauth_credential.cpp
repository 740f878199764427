#include "protocol/oauth_credential.hpp"

#include <nlohmann/json.hpp>

#include "protocol/content_digest.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"

namespace bulkhead {

namespace {

/// A request that is on its way when a token expires is refused.
constexpr std::int64_t margin_seconds = 10;

std::int64_t seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

client_auth method_called(std::string_view name) {
  return name == to_string(client_auth::secret_basic)  ? client_auth::secret_basic
         : name == to_string(client_auth::secret_post) ? client_auth::secret_post
                                                       : client_auth::none;
}

} // namespace

expected<std::string> credential_url(std::string_view url) {
  auto parts = read_web_url(url, "the server's URL");
  if (!parts) {
    return tl::unexpected{parts.error()};
  }
  return parts->text();
}

std::string credential_name(std::string_view owner, std::string_view url) {
  std::string text{owner};
  text += '\0';
  text += url;
  return content_digest(text);
}

std::string encode_credential(const oauth_credential& credential) {
  nlohmann::json document = {{"owner", credential.owner},
                             {"url", credential.url},
                             {"server", credential.server},
                             {"issuer", credential.issuer},
                             {"resource", credential.resource},
                             {"client_id", credential.client.id},
                             {"client_secret", credential.client.secret},
                             {"token_endpoint_auth_method", to_string(credential.client.method)},
                             {"token_endpoint", credential.token_endpoint},
                             {"revocation_endpoint", credential.revocation_endpoint},
                             {"access_token", credential.access_token},
                             {"refresh_token", credential.refresh_token},
                             {"scope", scope_text(credential.scopes)},
                             {"expires", credential.expires},
                             {"private_network", credential.private_network}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

expected<oauth_credential> decode_credential(std::string_view json, std::string_view owner,
                                             std::string_view url) {
  auto document = read_oauth_document(json, "a stored credential");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  oauth_credential result;
  result.owner = text_member(*document, "owner");
  result.url = text_member(*document, "url");
  result.server = text_member(*document, "server");
  result.issuer = text_member(*document, "issuer");
  result.resource = text_member(*document, "resource");
  result.client = {text_member(*document, "client_id"), text_member(*document, "client_secret"),
                   method_called(text_member(*document, "token_endpoint_auth_method"))};
  result.token_endpoint = text_member(*document, "token_endpoint");
  result.revocation_endpoint = text_member(*document, "revocation_endpoint");
  result.access_token = text_member(*document, "access_token");
  result.refresh_token = text_member(*document, "refresh_token");
  result.scopes = read_scopes(text_member(*document, "scope"));
  result.private_network = true_member(*document, "private_network");
  auto expires = document->find("expires");
  if (expires != document->end() && expires->is_number_integer()) {
    result.expires = expires->get<std::int64_t>();
  }
  if (result.owner != owner || result.url != url) {
    return fail(errc::denied, "a stored credential is of another owner or server");
  }
  if (result.token_endpoint.empty() || result.client.id.empty()) {
    return fail(errc::malformed, "a stored credential isn't complete");
  }
  return result;
}

void take_grant(oauth_credential& credential, const token_grant& grant,
                const std::vector<std::string>& asked, std::chrono::system_clock::time_point now) {
  credential.access_token = grant.access_token;
  if (!grant.refresh_token.empty()) {
    credential.refresh_token = grant.refresh_token;
  }
  credential.scopes = grant.scopes.value_or(asked);
  credential.expires = grant.lifetime ? seconds_of(now) + grant.lifetime->count() : 0;
}

bool is_fresh(const oauth_credential& credential, std::chrono::system_clock::time_point now) {
  return !credential.access_token.empty() &&
         (credential.expires == 0 || seconds_of(now) + margin_seconds < credential.expires);
}

} // namespace bulkhead
