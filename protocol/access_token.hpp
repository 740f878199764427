#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "protocol/key_set.hpp"
#include "protocol/oauth_resource.hpp"

namespace bulkhead {

/// Bytes of an access token that are looked at at all.
inline constexpr std::size_t longest_access_token = 8192;

/// Clocks differ by that much (RFC 7519, 4.1.4: "usually no more than a few minutes").
inline constexpr std::chrono::seconds token_leeway{30};

/// The keys of each issuer that has been asked, by `iss`.
using issuer_keys = std::map<std::string, key_set_ptr, std::less<>>;

/// What an access token says, once it is believed.
struct access_grant {
  std::string tenant;  ///< by name; whether there is such a tenant is another question
  std::string subject; ///< for logs; may be empty
  std::string issuer;

  friend bool operator==(const access_grant&, const access_grant&) = default;
};

/// Why one isn't.
struct access_refusal {
  enum class kind {
    invalid,     ///< whatever keys there are
    unknown_key, ///< `issuer` may have a key by now that verifies it
    scope,       ///< it is good, but not for this server
  };
  kind what = kind::invalid;
  std::string reason;      ///< for the log; nothing of the token stands in it
  std::string issuer = {}; ///< for unknown_key

  friend bool operator==(const access_refusal&, const access_refusal&) = default;
};

/// Checks a JWT access token (RFC 7519, RFC 8725, RFC 9068): a JWS with an algorithm that its
/// issuer is configured with, by a key of its issuer's, meant for this server (`aud`), valid at
/// `now` (`exp`, `nbf`, `iat`), with all scopes (`scope` or `scp`) and a tenant's name. Keys that
/// the token itself brings or points to never count.
tl::expected<access_grant, access_refusal> check_access_token(std::string_view token,
                                                              const oauth_resource& resource,
                                                              const issuer_keys& keys,
                                                              std::chrono::sys_seconds now);

} // namespace bulkhead
