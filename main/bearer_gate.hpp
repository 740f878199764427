#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "actors/interfaces.hpp"
#include "main/shared_process.hpp"
#include "protocol/bearer_check.hpp"
#include "protocol/health.hpp"

namespace bulkhead {

/// Who is let in over HTTP: by Bulkhead's own tokens, and by access tokens of the authorization
/// servers that are configured, whose keys are fetched only then.
class bearer_gate {
public:
  bearer_gate(shared_process& process, std::shared_ptr<const current_tokens> tokens);
  ~bearer_gate();
  bearer_gate(const bearer_gate&) = delete;
  bearer_gate& operator=(const bearer_gate&) = delete;

  /// These authorization servers count from now on. Not for an actor's thread.
  void apply(const std::optional<oauth_resource>& resource);

  /// See http_rules; thread-safe, and may be called as long as anybody likes, also after the gate
  /// is gone.
  std::function<tl::expected<std::string, outgoing_answer>(std::string_view token)> check() const;

  /// The answer to whoever asks for what is told of where to get tokens (RFC 9728); 404 where no
  /// authorization server is configured, or for another resource's path. The same holds for it.
  std::function<outgoing_answer(std::string_view path)> metadata() const;

  /// How the keys of each authorization server stand; thread-safe.
  std::vector<health_check> checks() const;

private:
  struct parts;

  shared_process& process_;
  std::shared_ptr<parts> parts_;
  http_host_actor http_; ///< null until there is something to fetch
};

} // namespace bulkhead
