#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/interfaces.hpp"
#include "protocol/trace_context.hpp"

namespace bulkhead {

/// One run as it was asked for, checked against configuration and policy.
struct run_request {
  std::string id; ///< 32 hex digits, names the run everywhere
  std::string code;
  std::vector<std::string> servers;     ///< raw names, each known and allowed, no duplicates
  std::chrono::milliseconds timeout{};  ///< for the code itself; booting doesn't count
  std::optional<session_lease> session; ///< none: in an interpreter of its own, which ends with it
  /// Gets a `run_progress` for "booting" and "running"; null when nobody wants to know.
  run_observer_actor observer;
  /// Gets the output as it comes, besides what the answer keeps of it; null when nobody wants it.
  output_observer_actor output;
  std::vector<input_file> files; ///< written below /workspace before the code starts
  std::string owner = "local";   ///< whose the artifacts and the output kept are
  std::string client = {};       ///< its name and version, as it told them; for the ledger
  std::string client_version = {};
  bool keep_output = true; ///< keep all of the output when it is more than the answer shows
  bool live = false;       ///< tell `observer`, now and then, what was written last
  /// Nothing is kept warm for another run: while the code waits for a server to start, for which
  /// that has a budget of its own, its clock stands still.
  bool patient = false;
  trace_context trace = {};  ///< that the run is a part of
  std::string asked_as = {}; ///< the id of the client's request, for the log; empty: none
  /// Who is told how the run goes on; null: whoever runs it finds out.
  std::shared_ptr<run_watch> watch = {};
};

/// Makes the actor of one run; the run begins with `run_atom`.
using run_starter = std::function<invocation_actor(const run_request&)>;

} // namespace bulkhead
