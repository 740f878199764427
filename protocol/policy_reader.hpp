#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "protocol/policy.hpp"

namespace bulkhead {

/// Something odd about a policy as it stands in a file.
struct policy_finding {
  enum class weight : std::uint8_t {
    closes, ///< it isn't understood, and may have meant to deny anything
    error,
    remark,
  };
  weight how = weight::closes;
  std::string file;
  std::string message;
};

/// Adds what a file's `policy` says to `rules`:
///
/// allow, deny: lists of patterns. readOnly: true, or a list of patterns. confirm: "destructive",
/// or a list of patterns (among which "destructive" means that, too). limits: {callsPerRun,
/// callsPerMinute: N, perTool: {pattern: N}}, N from 0 to 100,000. Anything else closes the policy.
std::vector<policy_finding> read_policy(const nlohmann::json& value, const std::string& file,
                                        policy& rules);

/// What is odd about patterns that match none of the configured servers: in an allow list that
/// shuts out too much; elsewhere it leaves open what was meant to be shut.
std::vector<policy_finding> check_patterns(const policy& rules,
                                           const std::vector<std::string_view>& servers);

} // namespace bulkhead
