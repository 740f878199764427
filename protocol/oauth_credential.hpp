#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/oauth_client.hpp"
#include "protocol/oauth_token.hpp"

namespace bulkhead {

/// Whose logins `bulkhead login` makes: those of the account itself.
inline constexpr const char* local_owner = "";

/// What lets one owner into one server, bound to the authorization server and the client that it
/// was got from and by.
struct oauth_credential {
  std::string owner;  ///< a tenant, or `local_owner`
  std::string url;    ///< of the MCP server, see `credential_url`
  std::string server; ///< its name in the configuration, for people
  std::string issuer;
  std::string resource; ///< what the tokens are for
  oauth_client client;
  std::string token_endpoint;
  std::string revocation_endpoint; ///< empty: none
  std::string access_token;        ///< empty: it was refused
  std::string refresh_token;       ///< empty: none
  std::vector<std::string> scopes; ///< granted, as far as known
  std::int64_t expires = 0;        ///< of the access token, seconds since 1970; 0: unknown
  bool private_network = false;    ///< its servers may be in a private network
  friend bool operator==(const oauth_credential&, const oauth_credential&) = default;
};

/// The form of a server's URL that credentials are bound to. Errors: invalid_argument.
expected<std::string> credential_url(std::string_view url);

/// The name of what is stored for an owner's server: 64 hex digits, which tell neither.
std::string credential_name(std::string_view owner, std::string_view url);

/// As JSON text, to be kept where nobody else reads.
std::string encode_credential(const oauth_credential& credential);

/// The inverse. Errors: malformed, or denied for one of another owner or server.
expected<oauth_credential> decode_credential(std::string_view json, std::string_view owner,
                                             std::string_view url);

/// Takes over what a token endpoint gave; `asked` are the scopes that were asked for.
void take_grant(oauth_credential& credential, const token_grant& grant,
                const std::vector<std::string>& asked, std::chrono::system_clock::time_point now);

/// Is the access token there and not about to expire?
bool is_fresh(const oauth_credential& credential, std::chrono::system_clock::time_point now);

} // namespace bulkhead
