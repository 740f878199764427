#pragma once

#include <string>

#include "protocol/error.hpp"

namespace bulkhead {

/// Who Bulkhead runs as.
struct account {
  std::string name;
  std::string home;
  unsigned uid = 0;
  bool changed = false; ///< root became this account
};

/// Started as root, gives root up for `name` for good, unless `stay_root`: groups, ids, HOME, USER,
/// XDG_RUNTIME_DIR, and on cgroup v1 a cgroup delegated to the account. Otherwise describes the
/// account that runs us. Errors: unavailable, with the remedy.
expected<account> settle_account(const std::string& name, bool stay_root);

/// The folder for this account's running instances (0700), made if need be: below XDG_RUNTIME_DIR,
/// else /tmp/bulkhead-UID. Errors: unavailable (it belongs to somebody else, can't be made).
expected<std::string> make_runtime_dir(const account& who);

} // namespace bulkhead
