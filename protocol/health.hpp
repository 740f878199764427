#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/http_messages.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// One thing that was looked at.
struct health_check {
  std::string what; ///< e.g. "container runtime"
  bool good = true;
  std::string detail{}; ///< what is wrong, or what was found
  std::string remedy{}; ///< what to do about it; empty where there is nothing to say
  bool vital = true;    ///< without it nobody is served
  friend bool operator==(const health_check&, const health_check&) = default;
};

struct health_report {
  std::vector<health_check> checks;

  enum class verdict : std::uint8_t {
    ok,
    degraded, ///< something is wrong that not everybody needs
    failing,
  };
  verdict result() const;
};

/// 200, or 503 where the verdict is "failing", with the report as a JSON object: `status`, and
/// `checks`, the bad ones first.
outgoing_answer encode_health(const health_report& report);

/// A folder as it was found.
struct folder_state {
  std::string path;
  std::string failure{}; ///< why it can't be written to; empty: it can
  std::uint64_t free_bytes = 0;
  std::uint64_t free_files = 0; ///< inodes; of no meaning where `counts_files` is false
  bool counts_files = false;
};

/// The room that has to be there, in bytes: some answers and records, but not much of what runs may
/// leave.
inline constexpr std::uint64_t least_room = std::uint64_t{64} * 1024 * 1024;
/// Files that can still be made, at the least.
inline constexpr std::uint64_t least_files = 64;

/// Is there a use for the folder? `what` says what it is for, e.g. "state folder".
health_check check_folder(const std::string& what, const folder_state& folder);

/// Can the configuration at `path` be used as it is now? While it can't, what was read before it
/// counts. `errors` are those of reading it.
health_check check_configuration(const std::string& path, const std::vector<error>& errors);

/// Are all definitions of MCP servers usable? `what` says whose, `problems` are those of reading
/// them, of which remarks don't count. Others work without them.
health_check check_definitions(const std::string& what,
                               const std::vector<config_problem>& problems);

/// Can the keys of an OAuth issuer be had? `failure` says why the last fetch failed, empty if it
/// didn't; keys that were fetched before that count on.
health_check check_issuer(const std::string& issuer, const std::string& failure, bool has_keys);

/// Where some of several things of a kind are bad, each counts for those alone who need it; where
/// all are, nobody is served.
void judge_together(std::vector<health_check>& checks);

} // namespace bulkhead
