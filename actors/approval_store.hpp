#pragma once

#include <functional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "protocol/tool_approval.hpp"

namespace bulkhead {

/// The approvals' file of a state folder: STATE_DIR/tool-approvals, where no sandbox reaches it.
std::string approvals_path(const settings& config);

/// Reads the file, which must be such that nobody but the account and root can have written it
/// (0600); none when there is no file. Errors: denied, unavailable, malformed.
expected<std::vector<tool_approval>> read_approvals(const std::string& path);

/// Reads the file, changes what it holds and puts it in its place in one go, one process at a time.
/// Errors: those of read_approvals.
expected<void>
change_approvals(const std::string& path,
                 const std::function<void(std::vector<tool_approval>& approvals)>& change);

/// In production it is spawned detached, since it waits for the disk.
struct approval_store_state {
  explicit approval_store_state(approval_store_actor::pointer self) : self{self} {}
  approval_store_actor::behavior_type make_behavior();

  approval_store_actor::pointer self;
  environment_ptr env;

  static inline const char* name = "approval-store";
};

approval_store_actor::behavior_type
approval_store(approval_store_actor::stateful_pointer<approval_store_state> self,
               environment_ptr env);

} // namespace bulkhead
