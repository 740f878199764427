#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cgroup_v1.hpp"
#include "protocol/error.hpp"

namespace bulkhead {

/// Where the driver looks on the host; tests put folders of their own here.
struct host_view {
  std::uint32_t uid = 0; ///< effective uid of this process
  std::string account;   ///< its name
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string proc = "/proc";
  std::string subuid_file = "/etc/subuid";
  std::string run = "/run";
  /// Searched after PATH: some distributions have OCI runtimes in /usr/sbin, which users often
  /// don't have on their PATH.
  std::string system_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::shared_ptr<cgroup_files> cgroups;

  /// The machine and account this process runs on.
  static host_view real();
};

/// "v2", "v1" (with or without a v2 hierarchy beside it).
std::string cgroup_version(const host_view& host);

/// Is a v2 hierarchy mounted beside v1? crun refuses such hosts.
bool cgroups_are_hybrid(const host_view& host);

/// Changes with every boot; empty where it can't be read.
std::string boot_id(const host_view& host);

/// Is the process with this id and start time (clock ticks after boot) still there and no zombie?
bool process_alive(const host_view& host, std::int32_t pid, std::uint64_t start_time);

/// When a process started, in clock ticks after boot (field 22 of /proc/PID/stat, see proc(5)).
std::optional<std::uint64_t> process_start_time(const host_view& host, std::int32_t pid);

/// The uid outside of `inner` inside, by the text of a /proc/PID/uid_map (lines "inside outside
/// count").
std::optional<std::uint32_t> map_uid(std::string_view uid_map, std::uint32_t inner);

/// The first range of sub-uids that /etc/subuid gives to the account, by name or number.
struct sub_uids {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
std::optional<sub_uids> find_sub_uids(const host_view& host);

/// A file's text, at most 1 MiB; nothing when it can't be read.
std::optional<std::string> read_small_file(const std::string& path);

/// Replaces a file: written beside it with `mode`, then renamed. Errors: unavailable, with the path
/// and the cause.
expected<void> write_small_file(const std::string& path, std::string_view text, unsigned mode);

} // namespace bulkhead
