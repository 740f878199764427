#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "protocol/error.hpp"

/// Limits where a rootless engine can't set them: on cgroup v1, below folders that were delegated
/// to the account once (deploy/setup.sh). A run gets a folder per controller, inside one of its
/// instance: of the processor each instance, which is a tenant's, gets an equal share, however many
/// runs it has. The folder is joined by the engine's command line before it starts; the OCI runtime
/// then makes a child named by the container's id in it. The outer folder is a net with room for
/// the command line and conmon; the exact limits are written into the child, once the guest is
/// ready and before it gets any code.

namespace bulkhead {

struct host_view;

/// The file operations on cgroup folders; tests bring their own.
class cgroup_files {
public:
  virtual ~cgroup_files() = default;
  /// Each answers 0 or an errno.
  virtual int make_folder(const std::string& path) = 0;
  virtual int remove_folder(const std::string& path) = 0;
  virtual int write(const std::string& path, std::string_view text) = 0;
  virtual std::optional<std::string> read(const std::string& path) = 0;
  /// The folders in a folder, by name.
  virtual std::vector<std::string> folders_in(const std::string& path) = 0;
  /// May this process divide the folder and move processes into it?
  virtual bool delegated(const std::string& path) = 0;
};

std::shared_ptr<cgroup_files> real_cgroup_files();

/// Where a process is in one hierarchy: a line of /proc/PID/cgroup (cgroups(7)), e.g.
/// "4:cpu,cpuacct:/user.slice", or "0::/user.slice".
struct cgroup_membership {
  std::vector<std::string> controllers; ///< none: v2
  std::string path;
};

/// Lines that aren't understood are left out.
std::vector<cgroup_membership> read_cgroup_table(const std::string& table);

/// A folder of one controller that the account may divide.
struct cgroup_base {
  std::string controller; ///< memory, pids, cpu or freezer
  std::string folder;
  friend bool operator==(const cgroup_base&, const cgroup_base&) = default;
};

/// What is delegated to this account: below its own cgroup, or below /ACCOUNT or /bulkhead. Empty
/// on v2.
std::vector<cgroup_base> find_delegated_cgroups(const host_view& host);

bool has_controller(const std::vector<cgroup_base>& bases, std::string_view controller);

struct cgroup_limits {
  std::uint64_t memory = 0; ///< bytes, swap included
  std::uint32_t pids = 0;
  std::optional<double> cpus;
  friend bool operator==(const cgroup_limits&, const cgroup_limits&) = default;
};

/// What the engine's command line and conmon may use on top of a run's limits. Measured with podman
/// 4.3: 13 processes and 15 MiB while a container runs, 24 and 22 MiB while it starts.
inline constexpr std::uint64_t command_line_memory = 64ULL << 20;
inline constexpr std::uint32_t command_line_pids = 64;

/// What a folder below each base is called.
struct cgroup_name {
  std::string instance; ///< the folder in which those of the instance are
  std::string own;      ///< INSTANCE-ID
};

/// Makes the folders `name` below each base, without limits; those that are there will do. Answers
/// their paths; on an error (unavailable) nothing new is left.
expected<std::vector<std::string>>
make_cgroups(cgroup_files& files, const std::vector<cgroup_base>& bases, const cgroup_name& name);

/// Makes the folders of a run, `name` below each base, with `limits` plus the room above. Answers
/// their paths; on an error (unavailable) nothing is left.
expected<std::vector<std::string>> make_run_cgroups(cgroup_files& files,
                                                    const std::vector<cgroup_base>& bases,
                                                    const cgroup_name& name,
                                                    const cgroup_limits& limits);

/// Writes the exact limits for the container `cid`: into the folder that the OCI runtime made for
/// it or, where `alone` says that nothing else is in the run's folder, into that one if there is
/// none (crun makes none when it is not root). Errors: unavailable, naming the file.
expected<void> confine_run_cgroups(cgroup_files& files, const std::vector<std::string>& folders,
                                   const std::string& cid, const cgroup_limits& limits,
                                   bool alone = false);

/// Has the kernel killed a process in one of these folders, which a container's own are, for want
/// of memory? Nothing when they can't tell any more.
std::optional<bool> memory_ran_out_in(cgroup_files& files, const std::vector<std::string>& folders);

/// All processes in the folders and below, each once.
std::vector<pid_t> processes_in(cgroup_files& files, const std::vector<std::string>& folders);

/// Lets processes in the folders and below work that a `container_brake` holds: else they die late,
/// or not at all.
void let_work(cgroup_files& files, const std::vector<std::string>& folders);

/// Removes the folders that `make_cgroups` made, children first; true when none is left. Processes
/// in them keep them. The instance's folders go with the last in them.
bool remove_cgroups(cgroup_files& files, const std::vector<std::string>& folders);

/// Moves a process out of `folder` into the base that it was made below.
void move_to_base(cgroup_files& files, const std::string& folder, pid_t pid);

} // namespace bulkhead
