#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

/// An authorization server whose access tokens let tenants in.
struct oauth_issuer {
  std::string issuer;                  ///< exactly as `iss` says it
  std::string jwks_uri;                ///< empty: its metadata tells
  std::string audience;                ///< which `aud` has to name
  std::vector<std::string> algorithms; ///< of RS256, PS256, ES256; no other is ever taken
  std::string tenant_claim;            ///< the claim that names the tenant; empty: `tenant` says it
  std::string tenant;                  ///< whose all its tokens are; empty: `tenant_claim` says it
  bool private_network = false;        ///< its keys may be fetched from a private address

  friend bool operator==(const oauth_issuer&, const oauth_issuer&) = default;
};

/// This server as an OAuth 2.1 resource server.
struct oauth_resource {
  std::string resource; ///< the URL that clients know it by, which tokens are bound to (RFC 8707)
  std::vector<std::string> scopes; ///< all of which a token must have
  std::vector<oauth_issuer> issuers;

  const oauth_issuer* find(std::string_view issuer) const;
  friend bool operator==(const oauth_resource&, const oauth_resource&) = default;
};

/// The algorithms that may be configured (RFC 7518, 3.1), which are those of asymmetric keys that
/// are common: with a symmetric one, whoever can check a token can make it.
const std::vector<std::string>& known_algorithms();

/// The well-known path below which that is told of resources (RFC 9728, 3).
inline constexpr std::string_view resource_document_root = "/.well-known/oauth-protected-resource";

/// What clients are told of where to get tokens (RFC 9728, 2), and the path at which: the
/// well-known one, followed by the resource's own (RFC 9728, 3.1).
std::string resource_document(const oauth_resource& resource);
std::string resource_document_path(const oauth_resource& resource);

/// The URL of that document.
std::string resource_document_url(const oauth_resource& resource);

/// Why a request is turned away.
enum class bearer_fault {
  no_token,           ///< 401
  invalid_token,      ///< 401
  insufficient_scope, ///< 403
};

/// What WWW-Authenticate says then (RFC 6750, 3; RFC 9728, 5.1).
std::string bearer_challenge_text(const oauth_resource& resource, bearer_fault fault);

/// Where an issuer's keys are, from its metadata (RFC 8414; OpenID Connect Discovery 1.0). Errors:
/// malformed, too_large, denied (another issuer than `issuer`, or a URL that isn't secure).
expected<std::string> read_jwks_uri(std::string_view json, const std::string& issuer);

} // namespace bulkhead
