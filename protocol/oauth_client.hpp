#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/oauth_metadata.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

/// How a client shows at the token endpoint who it is (RFC 6749, 2.3.1).
enum class client_auth : std::uint8_t { none, secret_post, secret_basic };
std::string_view to_string(client_auth method);

/// What Bulkhead is to one authorization server.
struct oauth_client {
  std::string id;
  std::string secret; ///< empty: a public client
  client_auth method = client_auth::none;
  friend bool operator==(const oauth_client&, const oauth_client&) = default;
};

/// What the user knows of a client already.
struct known_client {
  std::string id; ///< registered by hand; empty: not
  std::string secret;
  std::string document_url; ///< where a client-id metadata document lies; empty: nowhere
};

/// How a client comes to its id, in the order that MCP prefers.
enum class registration : std::uint8_t { known, document, dynamic };

/// Which way is open. Errors: unavailable with what the user can do, when none is.
expected<registration> choose_registration(const known_client& known,
                                           const issuer_metadata& issuer);

/// The client of a user's own registration, or of a metadata document.
oauth_client made_client(const known_client& known, registration how,
                         const issuer_metadata& issuer);

/// The JSON text of a dynamic registration (RFC 7591, 2) of a native application.
std::string registration_request(const issuer_metadata& issuer, const std::string& redirect_uri,
                                 const std::vector<std::string>& scopes);

/// Reads its answer. Errors: malformed, too_large, denied (the server's reason).
expected<oauth_client> read_registration(std::uint32_t status, std::string_view body,
                                         const issuer_metadata& issuer);

/// A form for the token endpoint, with what shows who the client is.
struct token_request {
  std::string body;          ///< application/x-www-form-urlencoded
  std::string authorization; ///< the header's value; empty: none
};
token_request authenticated(form_fields fields, const oauth_client& client);

} // namespace bulkhead
