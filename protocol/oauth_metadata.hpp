#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

/// Bytes of a metadata document, a registration or a token answer.
inline constexpr std::size_t largest_oauth_document = 256 * 1024;

/// What a protected MCP server says of itself (RFC 9728, 2).
struct resource_metadata {
  std::string resource; ///< what tokens are asked for (RFC 8707)
  std::vector<std::string> issuers;
  std::vector<std::string> scopes;
  friend bool operator==(const resource_metadata&, const resource_metadata&) = default;
};

/// What an authorization server says of itself (RFC 8414, 2; OpenID Connect Discovery 1.0, 3).
struct issuer_metadata {
  std::string issuer;
  std::string authorization_endpoint;
  std::string token_endpoint;
  std::string registration_endpoint; ///< empty: no dynamic registration
  std::string revocation_endpoint;   ///< empty: none
  std::vector<std::string> scopes;
  std::vector<std::string> token_auth_methods; ///< empty: not said, which means client_secret_basic
  bool client_id_documents = false; ///< takes the URL of a metadata document as a client's id
  bool sends_issuer = false;        ///< puts `iss` into its answers (RFC 9207)
  friend bool operator==(const issuer_metadata&, const issuer_metadata&) = default;
};

/// Where an MCP server's metadata can be, in the order to try: the URL of its challenge alone if
/// there is one, else the well-known places for its path and for its root.
std::vector<std::string> resource_metadata_urls(const web_url& server, std::string_view challenged);

/// Where an authorization server's metadata can be, in the order that MCP prescribes: with the path
/// inserted (OAuth, OpenID), then appended (OpenID).
std::vector<std::string> issuer_metadata_urls(const web_url& issuer);

/// May a token, a code or a secret go to this URL: https, or loopback where `loopback` allows it?
/// Errors: denied, naming `what`.
expected<web_url> read_secure_url(std::string_view text, std::string_view what, bool loopback);

/// Does a token for `resource` belong to the server at `server`: the same origin, and the same path
/// or one above it?
bool resource_covers(const web_url& resource, const web_url& server);

/// Reads a protected resource's metadata. Errors: malformed, too_large, denied (the resource isn't
/// the server, or no authorization server is named).
expected<resource_metadata> read_resource_metadata(std::string_view json, const web_url& server);

/// Reads an authorization server's metadata. Errors: malformed, too_large, denied (another issuer
/// than `issuer`, no PKCE with S256, an endpoint that isn't secure).
expected<issuer_metadata> read_issuer_metadata(std::string_view json, const std::string& issuer,
                                               bool loopback);

} // namespace bulkhead
