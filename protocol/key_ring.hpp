#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/access_token.hpp"

namespace bulkhead {

/// Whose access tokens are believed now, and by which keys. Thread-safe: requests are checked where
/// they arrive, while keys are fetched elsewhere.
class key_ring {
public:
  using clock = std::chrono::steady_clock;

  /// Between two fetches of one issuer's keys that tokens with unknown keys cause, whoever sends
  /// them, so that nobody can have us flood an authorization server.
  static constexpr std::chrono::seconds fetch_interval{30};

  /// A fetch that hasn't ended by then never will: whoever made it is gone.
  static constexpr std::chrono::seconds longest_fetch{60};

  struct contents {
    std::optional<oauth_resource> resource;
    issuer_keys keys;
    /// Why the last fetch of an issuer's keys failed; those of others aren't in it.
    std::map<std::string, std::string, std::less<>> failures;
  };

  std::shared_ptr<const contents> get() const;

  /// Other issuers count from now on; keys of those that stay as they were stay, too.
  void set_resource(std::optional<oauth_resource> resource);

  /// The keys of an issuer; dropped when it isn't configured any more.
  void set_keys(const std::string& issuer, key_set_ptr keys);

  /// They couldn't be had, until others are set.
  void set_failure(const std::string& issuer, std::string why);

  enum class asking {
    begin,     ///< fetch them: whoever gets this has to, and to say when it is over
    under_way, ///< somebody does
    too_soon,
  };

  /// May the keys of an issuer be fetched because a token names one that isn't known?
  asking ask(const std::string& issuer, clock::time_point now);

  /// A fetch begins for another reason; false when one is under way.
  bool begin(const std::string& issuer, clock::time_point now);
  void end(const std::string& issuer);

private:
  struct fetch {
    bool under_way = false;
    clock::time_point begun;

    bool is_running(clock::time_point now) const {
      return under_way && now - begun < longest_fetch;
    }
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const contents> contents_ = std::make_shared<const contents>();
  std::map<std::string, fetch, std::less<>> fetches_;
};

} // namespace bulkhead
