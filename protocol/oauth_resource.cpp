#include "protocol/oauth_resource.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"
#include "protocol/oauth_metadata.hpp"
#include "protocol/printable.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

const oauth_issuer* oauth_resource::find(std::string_view issuer) const {
  auto found = std::find_if(issuers.begin(), issuers.end(),
                            [&](const oauth_issuer& each) { return each.issuer == issuer; });
  return found != issuers.end() ? &*found : nullptr;
}

const std::vector<std::string>& known_algorithms() {
  static const std::vector<std::string> all = {"RS256", "PS256", "ES256"};
  return all;
}

std::string resource_document(const oauth_resource& resource) {
  nlohmann::ordered_json document{{"resource", resource.resource},
                                  {"authorization_servers", nlohmann::ordered_json::array()}};
  for (const auto& each : resource.issuers) {
    document["authorization_servers"].push_back(each.issuer);
  }
  if (!resource.scopes.empty()) {
    document["scopes_supported"] = resource.scopes;
  }
  document["bearer_methods_supported"] = {"header"};
  return document.dump();
}

std::string resource_document_path(const oauth_resource& resource) {
  auto url = read_web_url(resource.resource, "the resource");
  auto path = url ? url->path : std::string{};
  path.erase(path.find_last_not_of('/') + 1);
  return fmt::format("{}{}", resource_document_root, path);
}

std::string resource_document_url(const oauth_resource& resource) {
  auto url = read_web_url(resource.resource, "the resource");
  return url ? url->origin() + resource_document_path(resource) : std::string{};
}

std::string bearer_challenge_text(const oauth_resource& resource, bearer_fault fault) {
  std::string text = "Bearer ";
  if (fault == bearer_fault::invalid_token) {
    text += R"(error="invalid_token", )";
  } else if (fault == bearer_fault::insufficient_scope) {
    text += R"(error="insufficient_scope", )";
  }
  // Scopes hold neither quotes nor backslashes (RFC 6749, 3.3).
  if (!resource.scopes.empty() && fault != bearer_fault::invalid_token) {
    text += fmt::format("scope=\"{}\", ", scope_text(resource.scopes));
  }
  return text + fmt::format("resource_metadata=\"{}\"", resource_document_url(resource));
}

expected<std::string> read_jwks_uri(std::string_view json, const std::string& issuer) {
  auto document = read_oauth_document(json, "the authorization server's metadata");
  if (!document) {
    return tl::unexpected{document.error()};
  }
  if (auto named = text_member(*document, "issuer"); named != issuer) {
    return fail(errc::denied, fmt::format("the metadata is of another authorization server, \"{}\"",
                                          printable(shortened(named, 200))));
  }
  auto text = text_member(*document, "jwks_uri");
  if (text.empty()) {
    return fail(errc::malformed, "the authorization server's metadata has no jwks_uri; name one in "
                                 "the configuration");
  }
  auto url = read_secure_url(text, "the authorization server's jwks_uri", true);
  return url ? expected<std::string>{text} : tl::unexpected{url.error()};
}

} // namespace bulkhead
