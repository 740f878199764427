#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/credential_folder.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "protocol/oauth_login.hpp"

namespace bulkhead {

/// The store with its own timer: another process may hold a credential's lock.
using credential_store_impl_actor = credential_store_actor::extend<
    /// Tries again to begin the refresh of that name.
    caf::reacts_to<tick_atom, std::string>>;

/// Gives out tokens, and has them refreshed: once for all who wait, and by one process at a time,
/// since a refresh token is often worth something only once.
struct credential_store_state {
  using promise = caf::typed_response_promise<std::string>;

  /// A refresh on its way. It has a lock of its own accord from `asking` on.
  struct refresh {
    std::string owner;
    std::string url;
    deadline due;
    std::optional<credential_folder::lock> lock;
    std::vector<promise> waiting;
  };

  explicit credential_store_state(credential_store_impl_actor::pointer self);
  credential_store_impl_actor::behavior_type make_behavior();

  caf::result<std::string> token(const std::string& owner, const std::string& url);
  bool usable(const oauth_credential& credential) const;
  void begin(const std::string& name);
  void ask(const std::string& name, const oauth_credential& credential);
  void take(const std::string& name, oauth_credential credential, const http_response& answer);
  void drop(const oauth_credential& credential);
  void finish(const std::string& name, const expected<std::string>& outcome);

  credential_store_impl_actor::pointer self;
  environment_ptr env;
  std::function<http_host_actor()> http; ///< the one that is current
  std::optional<credential_folder> folder;
  std::map<std::string, refresh> refreshes; ///< by credential_name
  /// Access tokens that their servers refused, by credential_name.
  std::map<std::string, std::string> refused;

  static inline const char* name = "credential-store";
};

/// Works on files, so it wants a thread of its own.
credential_store_impl_actor::behavior_type
credential_store(credential_store_impl_actor::stateful_pointer<credential_store_state> self,
                 environment_ptr env, std::function<http_host_actor()> http);

/// Where the credentials of an account lie.
credential_folder credentials_of(const settings& config);

/// An exchange of OAuth's as a web server is asked for it.
http_request to_http(const oauth_exchange_request& exchange);

} // namespace bulkhead
