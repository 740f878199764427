#pragma once

#include <optional>
#include <string>

#include "actors/unique_descriptor.hpp"
#include "protocol/error.hpp"
#include "protocol/oauth_credential.hpp"

namespace bulkhead {

/// Where credentials lie between runs of Bulkhead: a file each, for the account alone, outside of
/// what code in a sandbox sees. Several processes use it at once.
class credential_folder {
public:
  /// `root` is made when something is written; what is above it must be there.
  explicit credential_folder(std::string root) : root_{std::move(root)} {}

  /// Who holds it may change that credential; others wait. Released when it goes.
  using lock = unique_descriptor;

  /// Takes the lock of an owner's server; nothing while somebody else has it. Errors: unavailable.
  expected<std::optional<lock>> try_lock(const std::string& owner, const std::string& url) const;

  /// What is kept for an owner's server; nothing if nothing is. Errors: unavailable, denied (others
  /// could read or change it), malformed; each says what to do.
  expected<std::optional<oauth_credential>> read(const std::string& owner,
                                                 const std::string& url) const;

  /// Replaces it as a whole. Errors: unavailable.
  expected<void> write(const oauth_credential& credential) const;

  /// Forgets it; false when there was none. Errors: unavailable.
  expected<bool> remove(const std::string& owner, const std::string& url) const;

  /// Keeps what a server asked for when it refused a request (the value of WWW-Authenticate), for
  /// the next login.
  expected<void> write_challenge(const std::string& owner, const std::string& url,
                                 const std::string& challenge) const;

  /// Forgets it: the login has been repeated, or is over.
  void remove_challenge(const std::string& owner, const std::string& url) const;

  /// The last one; empty if there is none.
  std::string challenge(const std::string& owner, const std::string& url) const;

private:
  expected<std::optional<std::string>> read_file(const std::string& name) const;
  expected<void> write_file(const std::string& name, std::string_view text) const;
  expected<bool> remove_file(const std::string& name) const;

  std::string root_;
};

} // namespace bulkhead
