#include "protocol/oauth_metadata.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t shown_text = 200;

std::string shown(std::string text) {
  return printable(shortened(std::move(text), shown_text));
}

/// A path without the slashes at its end, so that a root is empty.
std::string trimmed(std::string path) {
  path.erase(path.find_last_not_of('/') + 1);
  return path;
}

std::string well_known(const web_url& url, std::string_view name, const std::string& path) {
  return fmt::format("{}/.well-known/{}{}", url.origin(), name, path);
}

std::vector<std::string> scopes_of(const nlohmann::json& document) {
  std::vector<std::string> result;
  for (const auto& scope : text_members(document, "scopes_supported")) {
    result = joined_scopes(std::move(result), read_scopes(scope));
  }
  return result;
}

/// Reads endpoints and keeps the first error.
class endpoint_reader {
public:
  endpoint_reader(const nlohmann::json& document, bool loopback)
      : document_{document}, loopback_{loopback} {}

  std::string endpoint(const char* key, bool needed) {
    auto text = text_member(document_, key);
    if (text.empty()) {
      if (needed && failure_.code == errc::none) {
        failure_ = {errc::malformed,
                    fmt::format("the authorization server's metadata has no {}", key)};
      }
      return text;
    }
    if (auto url =
            read_secure_url(text, fmt::format("the authorization server's {}", key), loopback_);
        !url && failure_.code == errc::none) {
      failure_ = url.error();
    }
    return text;
  }

  const error& failure() const { return failure_; }

private:
  const nlohmann::json& document_;
  bool loopback_;
  error failure_{errc::none, {}};
};

} // namespace

std::vector<std::string> resource_metadata_urls(const web_url& server,
                                                std::string_view challenged) {
  if (!challenged.empty()) {
    return {std::string{challenged}};
  }
  auto path = trimmed(server.path);
  auto root = well_known(server, "oauth-protected-resource", {});
  if (path.empty()) {
    return {root};
  }
  return {well_known(server, "oauth-protected-resource", path), root};
}

std::vector<std::string> issuer_metadata_urls(const web_url& issuer) {
  auto path = trimmed(issuer.path);
  std::vector<std::string> result{well_known(issuer, "oauth-authorization-server", path),
                                  well_known(issuer, "openid-configuration", path)};
  if (!path.empty()) {
    result.push_back(issuer.origin() + path + "/.well-known/openid-configuration");
  }
  return result;
}

expected<web_url> read_secure_url(std::string_view text, std::string_view what, bool loopback) {
  auto url = read_web_url(text, what);
  if (!url) {
    return url;
  }
  if (!url->is_https() && !url->is_loopback()) {
    return fail(errc::denied,
                fmt::format("{} {} isn't https, so whoever is on the way could read the secrets "
                            "that go there",
                            what, shown(url->text())));
  }
  if (!loopback && url->is_private()) {
    return fail(errc::denied, fmt::format("{} {} is an address of this machine or its network, "
                                          "which a server elsewhere has no business to name",
                                          what, shown(url->text())));
  }
  return url;
}

bool resource_covers(const web_url& resource, const web_url& server) {
  if (resource.origin() != server.origin() ||
      (!resource.query.empty() && resource.query != server.query)) {
    return false;
  }
  auto above = trimmed(resource.path);
  auto path = trimmed(server.path);
  return path == above || path.starts_with(above + "/");
}

expected<resource_metadata> read_resource_metadata(std::string_view json, const web_url& server) {
  auto document = read_oauth_document(json, "the server's OAuth metadata");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  resource_metadata result;
  result.resource = text_member(*document, "resource");
  result.issuers = text_members(*document, "authorization_servers");
  result.scopes = scopes_of(*document);
  auto resource = read_web_url(result.resource, "the resource of the server's OAuth metadata");
  if (!resource) {
    return tl::unexpected{resource.error()};
  }
  if (!resource_covers(*resource, server)) {
    return fail(errc::denied,
                fmt::format("its OAuth metadata speaks of another resource, {}, so a token got by "
                            "it could be for somebody else",
                            shown(result.resource)));
  }
  if (result.issuers.empty()) {
    return fail(errc::malformed, "its OAuth metadata names no authorization server");
  }
  return result;
}

expected<issuer_metadata> read_issuer_metadata(std::string_view json, const std::string& issuer,
                                               bool loopback) {
  auto document = read_oauth_document(json, "the authorization server's metadata");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  issuer_metadata result;
  result.issuer = text_member(*document, "issuer");
  // RFC 8414, 3.3: identical, not equivalent.
  if (result.issuer != issuer) {
    return fail(errc::denied,
                fmt::format("the metadata of the authorization server {} says that it is of {}, "
                            "so it isn't used",
                            shown(issuer), shown(result.issuer)));
  }
  endpoint_reader reader{*document, loopback};
  result.authorization_endpoint = reader.endpoint("authorization_endpoint", true);
  result.token_endpoint = reader.endpoint("token_endpoint", true);
  result.registration_endpoint = reader.endpoint("registration_endpoint", false);
  result.revocation_endpoint = reader.endpoint("revocation_endpoint", false);
  if (reader.failure().code != errc::none) {
    return tl::unexpected{reader.failure()};
  }
  auto challenges = text_members(*document, "code_challenge_methods_supported");
  if (std::find(challenges.begin(), challenges.end(), "S256") == challenges.end()) {
    return fail(errc::denied,
                fmt::format("the authorization server {} doesn't say that it protects codes (PKCE "
                            "with S256), which MCP demands",
                            shown(issuer)));
  }
  result.scopes = scopes_of(*document);
  result.token_auth_methods = text_members(*document, "token_endpoint_auth_methods_supported");
  result.client_id_documents = true_member(*document, "client_id_metadata_document_supported");
  result.sends_issuer = true_member(*document, "authorization_response_iss_parameter_supported");
  return result;
}

} // namespace bulkhead
