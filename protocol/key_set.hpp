#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

struct _cjose_jwk_int;

namespace bulkhead {

/// A public key of an authorization server.
struct verification_key {
  std::string id; ///< `kid`, may be empty
  /// What it verifies: RS256 and PS256, or ES256; less where the key itself says so.
  std::vector<std::string> algorithms;
  std::shared_ptr<_cjose_jwk_int> key;
};

/// The keys that an authorization server signs with (RFC 7517, 5).
class key_set {
public:
  key_set() = default;
  explicit key_set(std::vector<verification_key> keys) : keys_{std::move(keys)} {}

  const std::vector<verification_key>& keys() const { return keys_; }

  /// Is there a key of that id, whatever it is for?
  bool knows(std::string_view id) const;

private:
  std::vector<verification_key> keys_;
};

using key_set_ptr = std::shared_ptr<const key_set>;

/// Reads a set. Keys that can't verify what is ever configured are left out: other kinds and
/// curves, symmetric ones above all, those for encryption, RSA keys of less than 2048 or more than
/// 8192 bits; and all beyond 64. A set with no key left is an error. Errors: malformed, too_large.
expected<key_set> read_key_set(std::string_view json);

/// Does the compact JWS verify with the key, by this algorithm and no other? Errors: denied.
expected<void> verify_jws(std::string_view compact, const verification_key& key,
                          std::string_view algorithm);

} // namespace bulkhead
