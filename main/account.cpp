#include "main/account.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "actors/user_bus.hpp"

namespace bulkhead {

namespace {

constexpr auto account_runtime_dir = "/run/bulkhead";

bool owned_folder(const char* path, uid_t uid, gid_t gid, mode_t mode) {
  if (::mkdir(path, mode) != 0 && errno != EEXIST) {
    return false;
  }
  struct stat info {};
  return ::lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && ::chown(path, uid, gid) == 0;
}

/// On cgroup v1 only root can delegate; what it gave is gone after a reboot. Best effort: doctor
/// tells when limits don't hold.
void delegate_cgroups(uid_t uid, gid_t gid) {
  for (const char* controller : {"memory", "pids", "cpu"}) {
    auto parent = fmt::format("/sys/fs/cgroup/{}", controller);
    if (::access((parent + "/cgroup.procs").c_str(), F_OK) != 0) {
      continue;
    }
    auto folder = parent + "/bulkhead";
    if (!owned_folder(folder.c_str(), uid, gid, 0755)) {
      continue;
    }
    for (const char* file : {"cgroup.procs", "tasks"}) {
      [[maybe_unused]] int ignored = ::chown((folder + "/" + file).c_str(), uid, gid);
    }
  }
}

expected<account> become(const passwd& entry) {
  delegate_cgroups(entry.pw_uid, entry.pw_gid);
  if (!owned_folder(account_runtime_dir, entry.pw_uid, entry.pw_gid, 0700)) {
    return fail(errc::unavailable,
                fmt::format("make \"{}\" for account \"{}\": {}", account_runtime_dir,
                            entry.pw_name, strerror(errno)));
  }
  if (::initgroups(entry.pw_name, entry.pw_gid) != 0 ||
      ::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) != 0 ||
      ::setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid) != 0) {
    return fail(errc::unavailable,
                fmt::format("become account \"{}\": {}", entry.pw_name, strerror(errno)));
  }
  // Changing ids makes a process undumpable, and its /proc entries root's.
  ::prctl(PR_SET_DUMPABLE, 1);
  ::setenv("HOME", entry.pw_dir, 1);
  ::setenv("USER", entry.pw_name, 1);
  ::setenv("LOGNAME", entry.pw_name, 1);
  ::setenv("XDG_RUNTIME_DIR", account_runtime_dir, 1);
  for (const char* roots :
       {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) {
    ::unsetenv(roots);
  }
  // On cgroup v2 limits are set over the account's own bus, where there is one.
  if (auto bus = user_bus(entry.pw_uid)) {
    ::setenv("DBUS_SESSION_BUS_ADDRESS", bus->c_str(), 1);
  } else {
    ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
  }
  if (::access(".", X_OK | R_OK) != 0) {
    [[maybe_unused]] int ignored = ::chdir(entry.pw_dir);
  }
  return account{entry.pw_name, entry.pw_dir, entry.pw_uid, true};
}

} // namespace

expected<account> settle_account(const std::string& name, bool stay_root) {
  auto uid = ::geteuid();
  if (uid == 0 && !stay_root) {
    const auto* entry = ::getpwnam(name.c_str());
    if (entry == nullptr || entry->pw_uid == 0) {
      return fail(
          errc::unavailable,
          fmt::format("Bulkhead does not run containers as root, and there is no unprivileged "
                      "account \"{}\" to become: make it with deploy/setup.sh, name another "
                      "with --account, or set MCP_BRIDGE_ALLOW_ROOTFUL=1 to stay root",
                      name));
    }
    return become(*entry);
  }
  const auto* entry = ::getpwuid(uid);
  const char* home = std::getenv("HOME");
  if (entry == nullptr && home == nullptr) {
    return fail(errc::unavailable, fmt::format("user {} has no home folder: set HOME", uid));
  }
  return account{entry != nullptr ? entry->pw_name : std::to_string(uid),
                 home != nullptr ? home : entry->pw_dir, uid, false};
}

expected<std::string> make_runtime_dir(const account& who) {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  auto path = base != nullptr && *base != '\0' ? fmt::format("{}/bulkhead", base)
                                               : fmt::format("/tmp/bulkhead-{}", who.uid);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errc::unavailable, fmt::format("make folder \"{}\": {}", path, strerror(errno)));
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != who.uid ||
      (info.st_mode & 0077) != 0) {
    return fail(
        errc::unavailable,
        fmt::format("\"{0}\" is not a folder of mode 0700 that belongs to \"{1}\"; while no other "
                    "account's Bulkhead uses it: chown {1} {0} && chmod 700 {0}",
                    path, who.name));
  }
  return path;
}

} // namespace bulkhead
