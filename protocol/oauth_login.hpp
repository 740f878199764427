#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_credential.hpp"
#include "protocol/oauth_request.hpp"

namespace bulkhead {

/// One HTTP exchange of a login; redirects aren't followed.
struct oauth_exchange_request {
  std::string method = "GET";
  std::string url;
  form_fields headers;
  std::string body;
  bool public_only = true; ///< hosts of the public internet only
};

struct oauth_exchange_answer {
  std::uint32_t status = 0;
  std::string body;
};

/// The exchange that sends a form to a token or revocation endpoint.
oauth_exchange_request token_exchange(const std::string& endpoint, const token_request& form,
                                      bool public_only);

using oauth_exchange =
    std::function<expected<oauth_exchange_answer>(const oauth_exchange_request&)>;

/// What a login is for.
struct login_request {
  std::string owner;
  std::string name; ///< the server's in the configuration
  web_url server;
  bearer_challenge challenge; ///< of the server, if it is known
  known_client client;
  std::vector<std::string> scopes;  ///< that the user names
  std::vector<std::string> granted; ///< by an earlier login, to be kept
  bool private_network = false;     ///< other servers that it names may be in a private network
};

/// What a login needs of the world around it.
struct login_edges {
  oauth_exchange exchange;
  std::function<std::string()> random; ///< 128 random bits as 32 hex digits
  std::function<std::chrono::system_clock::time_point()> now;
  std::string redirect_uri; ///< where the answer will be waited for
  /// Has the user open the URL; answers the query of the redirect that has the attempt's state.
  std::function<expected<std::string>(const std::string& url, const authorization_attempt&)>
      authorize;
};

/// Gets tokens for a server: finds its authorization server, registers, has the user authorize,
/// and turns the code into tokens. Errors, each saying what the user can do: denied, unavailable,
/// malformed, too_large, timeout, cancelled.
expected<oauth_credential> log_in(const login_request& request, const login_edges& edges);

} // namespace bulkhead
