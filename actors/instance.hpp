#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

/// One running Bulkhead among others of the same account: a folder below the runtime folder, with a
/// lock file that the kernel releases when the process dies, however it dies.
///
///   RUNTIME_DIR/INSTANCE/lock            held for the life of the process
///   RUNTIME_DIR/INSTANCE/…               see volume_manager
class instance_lock {
public:
  /// Makes the folder (0700) and takes the lock. Errors: unavailable, with the path and the cause.
  static expected<instance_lock> acquire(std::string_view runtime_dir, std::string_view instance);

  instance_lock(instance_lock&& other) noexcept;
  instance_lock& operator=(instance_lock&& other) noexcept;
  /// Releases the lock; the folder is the volume manager's to remove.
  ~instance_lock();

  const std::string& folder() const { return folder_; }

private:
  instance_lock(std::string folder, int descriptor)
      : folder_{std::move(folder)}, descriptor_{descriptor} {}
  std::string folder_;
  int descriptor_ = -1;
};

/// Is a process alive that holds the lock of `instance`? Names that aren't 16 hex digits are never
/// alive.
bool instance_alive(std::string_view runtime_dir, std::string_view instance);

/// The instances that have a folder in `runtime_dir`, alive or not.
std::vector<std::string> known_instances(std::string_view runtime_dir);

} // namespace bulkhead
