#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/tenant_config.hpp"

namespace bulkhead {

/// A token that lets a tenant in is `bh_` and 256 random bits in base64url (43 characters). All
/// that is stored is its SHA-256. A slow hash, which passwords need, would gain nothing: nobody can
/// try 2^256 tokens, however quick the hash is, and every request has to be hashed.
inline constexpr std::size_t token_random_bytes = 32;

/// The token of these `token_random_bytes`, fresh from the system's source of randomness.
std::string make_token(std::string_view random);

/// Has `text` the form of a token? That tells nothing about whether one like it was ever made.
bool looks_like_token(std::string_view text);

/// The hash that is stored of a token.
std::string token_hash(std::string_view token);

/// Is it valid at that moment?
bool is_valid(const tenant_token& token, std::chrono::sys_seconds now);

/// Whose token it is.
struct token_holder {
  std::string tenant;
  std::string id; ///< of the token

  friend bool operator==(const token_holder&, const token_holder&) = default;
};

/// The tokens of all tenants, to be asked by any thread.
class token_book {
public:
  token_book() = default;
  explicit token_book(const serve_config& config);

  /// Who holds this token; nothing for one that is unknown or has expired, alike. The time that it
  /// takes tells nothing of what is in the book: what is looked up is the hash, which nobody can
  /// choose, and the hashes are compared in constant time.
  std::optional<token_holder> find(std::string_view token, std::chrono::sys_seconds now) const;

private:
  struct entry {
    tenant_token token;
    std::string tenant;
  };
  std::vector<entry> entries_; ///< sorted by hash
};

/// The book in force, which another may replace at any time. Thread-safe.
class current_tokens {
public:
  explicit current_tokens(token_book first = {})
      : book_{std::make_shared<const token_book>(std::move(first))} {}

  std::shared_ptr<const token_book> get() const {
    std::lock_guard guard{mutex_};
    return book_;
  }

  void set(token_book next) {
    auto made = std::make_shared<const token_book>(std::move(next));
    std::lock_guard guard{mutex_};
    book_.swap(made);
  }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<const token_book> book_;
};

} // namespace bulkhead
