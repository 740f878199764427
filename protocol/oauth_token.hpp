#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/oauth_client.hpp"

namespace bulkhead {

/// What a token endpoint gave.
struct token_grant {
  std::string access_token;
  std::string refresh_token;                      ///< empty: none (a refresh keeps the old one)
  std::optional<std::chrono::seconds> lifetime;   ///< of the access token, if said
  std::optional<std::vector<std::string>> scopes; ///< if other than those asked for
  friend bool operator==(const token_grant&, const token_grant&) = default;
};

/// Why it gave none.
struct token_failure {
  /// The grant is worth nothing any more (invalid_grant, or the client is unknown): asking again is
  /// of no use. Otherwise the server is in trouble, or the request was unfit.
  bool final = false;
  error reason;
};

/// What to tell of an OAuth error answer (RFC 6749, 5.2), shortened, with nothing that could drive
/// a terminal.
std::string oauth_refusal(std::uint32_t status, std::string_view body);

/// The request that turns a code into tokens (RFC 6749, 4.1.3, RFC 7636, RFC 8707).
token_request code_request(const oauth_client& client, const std::string& code,
                           const std::string& redirect_uri, const std::string& verifier,
                           const std::string& resource);

/// The request for new tokens (RFC 6749, 6), with the scopes that the old ones have.
token_request refresh_request(const oauth_client& client, const std::string& refresh_token,
                              const std::string& resource);

/// The request that ends a token (RFC 7009).
token_request revocation_request(const oauth_client& client, const std::string& token,
                                 std::string_view hint);

/// Reads a token endpoint's answer (RFC 6749, 5.1).
tl::expected<token_grant, token_failure> read_token_answer(std::uint32_t status,
                                                           std::string_view body);

} // namespace bulkhead
