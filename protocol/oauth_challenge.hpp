#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// What a server asks for in `WWW-Authenticate: Bearer …` (RFC 6750, 3; RFC 9728, 5.1). Values come
/// from the network: bounded, and nothing but visible ASCII and spaces.
struct bearer_challenge {
  std::string resource_metadata; ///< a URL, unchecked
  std::vector<std::string> scopes;
  std::string error; ///< e.g. "invalid_token", "insufficient_scope"
  friend bool operator==(const bearer_challenge&, const bearer_challenge&) = default;
};

/// Bytes of a WWW-Authenticate header that are looked at.
inline constexpr std::size_t longest_challenge = 16384;

/// The first Bearer challenge among those in a header's value (RFC 9110, 11.6.1); nothing if there
/// is none or the header can't be understood up to it.
std::optional<bearer_challenge> read_bearer_challenge(std::string_view header);

/// The scopes of a list parted by spaces, each once, in order; those that no scope may look like
/// (RFC 6749, 3.3) and all beyond 64 are left out.
std::vector<std::string> read_scopes(std::string_view text);

/// The inverse.
std::string scope_text(const std::vector<std::string>& scopes);

/// `first` and what of `second` isn't among them.
std::vector<std::string> joined_scopes(std::vector<std::string> first,
                                       const std::vector<std::string>& second);

} // namespace bulkhead
