#pragma once

#include <map>
#include <string>

#include "actors/credential_folder.hpp"
#include "main/blocking_http.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/server_config.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

/// The server that a login is for.
struct login_target {
  std::string name;  ///< in the configuration; empty: it isn't there
  std::string shown; ///< for people
  web_url url;
  std::map<std::string, std::string> headers = {}; ///< that its entry gives to each request
  bool is_sse = false;
  server_oauth oauth = {};
};

/// The server of that name, or at that URL. Errors: not_found, invalid_argument.
expected<login_target> find_login_target(const server_catalogue& catalogue,
                                         const std::string& server);

/// What the server asks for: what it wanted when it refused a request last, else what it says to a
/// client without a token. Errors: those of the HTTP host.
expected<bearer_challenge> find_challenge(const credential_folder& folder,
                                          const login_target& target, blocking_http& http);

/// Replaces what is kept for the server. Errors: unavailable, timeout, cancelled.
expected<void> keep_credential(const credential_folder& folder, const login_target& target,
                               blocking_http& http, const oauth_credential& credential);

} // namespace bulkhead
