#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace bulkhead {

/// The address of the message bus by which the service manager of an account can be asked for
/// cgroups, as DBUS_SESSION_BUS_ADDRESS has it; nothing where the account has none. `runtime_dirs`
/// is where systemd keeps a folder for each account.
std::optional<std::string> user_bus(uid_t account, const std::string& runtime_dirs = "/run/user");

} // namespace bulkhead
