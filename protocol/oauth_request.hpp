#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/oauth_client.hpp"

namespace bulkhead {

/// One attempt to have a user authorize Bulkhead: what must be the same in its answer.
struct authorization_attempt {
  std::string state;    ///< ties the answer to the attempt
  std::string verifier; ///< PKCE (RFC 7636, 4.1): 43 to 128 unreserved characters
  std::string redirect_uri;
  std::string issuer;        ///< of the metadata that was checked
  bool sends_issuer = false; ///< the answer must name the issuer (RFC 9207)
};

/// The S256 challenge for a verifier (RFC 7636, 4.2).
std::string code_challenge(std::string_view verifier);

/// The scopes to ask for: those that the user names, else those of the challenge, else those of the
/// resource; with what was granted before, and offline_access where the authorization server has
/// it, so that it gives a refresh token.
std::vector<std::string> wanted_scopes(const std::vector<std::string>& named,
                                       const std::vector<std::string>& challenged,
                                       const std::vector<std::string>& supported,
                                       const std::vector<std::string>& granted,
                                       const issuer_metadata& issuer);

/// The URL that the user's browser opens (RFC 6749, 4.1.1).
std::string authorization_url(const authorization_attempt& attempt, const issuer_metadata& issuer,
                              const oauth_client& client, const std::vector<std::string>& scopes,
                              const std::string& resource);

/// Does an answer, as the query that came with the redirect, belong to the attempt?
bool has_state(const authorization_attempt& attempt, std::string_view query);

/// The code of an answer that has the attempt's state. Errors: denied (another issuer, or none
/// where one must be; the user or the server refuses), malformed.
expected<std::string> read_authorization_answer(const authorization_attempt& attempt,
                                                std::string_view query);

} // namespace bulkhead
