#pragma once

#include <cstdint>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"

namespace bulkhead {

/// The host's folders of this instance:
///
///   RUNTIME_DIR/INSTANCE/ipc/          0755, files 0444: the guest's programs, mounted at /ipc
///   RUNTIME_DIR/INSTANCE/seccomp.json  the engine reads it
///   RUNTIME_DIR/INSTANCE/runs/ID/      0700, working folder of a run's command line
///   STATE_DIR/user_tools/              mounted at /projects, shared with the guest's uid by ACL
///
/// Everything above them is 0700: the engine mounts as the account, before the guest's user is
/// taken on. In production it is spawned detached, since it works on files; nothing it does waits
/// for others.
struct volume_manager_state {
  explicit volume_manager_state(volume_manager_actor::pointer self);
  volume_manager_actor::behavior_type make_behavior();

  expected<instance_folders> prepare() const;
  expected<std::string> grant(std::uint32_t guest) const;
  expected<std::string> make_run_folder(const std::string& id) const;
  expected<void> discard(const std::string& id) const;
  expected<void> remove_all() const;
  std::string root() const;

  volume_manager_actor::pointer self;
  environment_ptr env;

  static inline const char* name = "volume-manager";
};

volume_manager_actor::behavior_type
volume_manager(volume_manager_actor::stateful_pointer<volume_manager_state> self,
               environment_ptr env);

} // namespace bulkhead
