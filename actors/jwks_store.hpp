#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/interfaces.hpp"
#include "protocol/key_ring.hpp"

namespace bulkhead {

/// The store with its own timer.
using jwks_store_impl_actor = jwks_store_actor::extend<
    /// Fetches what is due.
    caf::reacts_to<tick_atom>>;

/// Fetches the keys of the configured issuers into the ring: at first, every hour, sooner after a
/// failure, and when it is asked to. Keys that were fetched count until others are, so that an
/// authorization server that is down for a while keeps nobody out.
struct jwks_store_state {
  using clock = std::chrono::steady_clock;

  /// One issuer's keys.
  struct source {
    clock::time_point due;             ///< of the next fetch
    std::uint32_t failures = 0;        ///< in a row
    std::string jwks_uri;              ///< as its metadata said, for this fetch
    std::optional<oauth_issuer> asked; ///< as it was defined when this fetch began
    std::vector<std::string> urls;     ///< of metadata, that are still to be tried
  };

  explicit jwks_store_state(jwks_store_impl_actor::pointer self);
  jwks_store_impl_actor::behavior_type make_behavior();

  std::optional<oauth_issuer> definition(const std::string& issuer) const;
  void adopt();
  void fetch_due();
  void fetch(const std::string& issuer, bool begun);
  void find_keys(const std::string& issuer);
  void get(const std::string& issuer, const std::string& url,
           std::function<void(const http_response&)> take,
           std::function<void(const std::string&)> failed);
  void take_keys(const std::string& issuer, const http_response& answer);
  void fail(const std::string& issuer, const std::string& why);
  void finish(const std::string& issuer, clock::duration pause);

  jwks_store_impl_actor::pointer self;
  std::shared_ptr<key_ring> ring;
  std::shared_ptr<spdlog::logger> log;
  std::function<http_host_actor()> http; ///< the one that is current
  std::map<std::string, source> sources; ///< by issuer

  static inline const char* name = "jwks-store";
};

jwks_store_impl_actor::behavior_type
jwks_store(jwks_store_impl_actor::stateful_pointer<jwks_store_state> self,
           std::shared_ptr<key_ring> ring, std::shared_ptr<spdlog::logger> log,
           std::function<http_host_actor()> http);

} // namespace bulkhead
