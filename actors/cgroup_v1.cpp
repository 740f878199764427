#include "actors/cgroup_v1.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "actors/host_view.hpp"

namespace bulkhead {

namespace {

/// Limits are set by the first three; the freezer stops an idle session.
constexpr std::array controllers = {"memory", "pids", "cpu", "freezer"};

/// The period of the cpu quota in microseconds, the kernel's default (sched-bwc.rst).
constexpr std::uint64_t cpu_period = 100'000;

class kernel_cgroup_files : public cgroup_files {
public:
  int make_folder(const std::string& path) override {
    // The guest, who is "others" here, reads its own limits whatever the umask is.
    bool made = ::mkdir(path.c_str(), 0755) == 0 && ::chmod(path.c_str(), 0755) == 0;
    return made ? 0 : errno;
  }

  int remove_folder(const std::string& path) override {
    return ::rmdir(path.c_str()) == 0 ? 0 : errno;
  }

  int write(const std::string& path, std::string_view text) override {
    int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
      return errno;
    }
    auto put = ::write(fd, text.data(), text.size());
    int result = put == static_cast<ssize_t>(text.size()) ? 0 : errno;
    ::close(fd);
    return result;
  }

  std::optional<std::string> read(const std::string& path) override {
    return read_small_file(path);
  }

  std::vector<std::string> folders_in(const std::string& path) override {
    std::vector<std::string> result;
    std::unique_ptr<DIR, int (*)(DIR*)> dir{::opendir(path.c_str()), ::closedir};
    while (dir) {
      const auto* entry = ::readdir(dir.get());
      if (entry == nullptr) {
        break;
      }
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
        result.emplace_back(entry->d_name);
      }
    }
    return result;
  }

  bool delegated(const std::string& path) override {
    return ::access(path.c_str(), W_OK | X_OK) == 0 &&
           ::access((path + "/cgroup.procs").c_str(), W_OK) == 0;
  }
};

/// Where this process is in the hierarchy of a controller, e.g. "/user.slice".
std::string own_cgroup(const std::string& table, std::string_view controller) {
  for (const auto& [names, path] : read_cgroup_table(table)) {
    if (std::find(names.begin(), names.end(), controller) != names.end()) {
      return path == "/" ? "" : path;
    }
  }
  return {};
}

/// A folder's controller, by its place below the hierarchy's mount.
bool belongs_to(const std::string& folder, std::string_view controller) {
  return folder.find(fmt::format("/{}/", controller)) != std::string::npos;
}

error write_failure(const std::string& path, const std::string& value, int cause) {
  return {errc::unavailable, fmt::format("set the sandbox's limit {} in \"{}\": {}", value, path,
                                         std::strerror(cause))};
}

struct setting {
  std::string file;
  std::string value;
  bool optional = false; ///< the kernel may be built without it
};

std::vector<setting> settings_for(const std::string& folder, const cgroup_limits& limits) {
  if (belongs_to(folder, "memory")) {
    auto bytes = std::to_string(limits.memory);
    // memsw counts memory and swap together and can't be below the first.
    return {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes, true}};
  }
  if (belongs_to(folder, "pids")) {
    return {{"pids.max", std::to_string(limits.pids)}};
  }
  if (belongs_to(folder, "cpu") && limits.cpus) {
    auto quota = static_cast<std::uint64_t>(std::llround(*limits.cpus * cpu_period));
    return {{"cpu.cfs_period_us", std::to_string(cpu_period)},
            {"cpu.cfs_quota_us", std::to_string(quota)}};
  }
  return {};
}

expected<void> apply(cgroup_files& files, const std::string& folder,
                     const std::vector<setting>& settings) {
  for (const auto& each : settings) {
    auto path = folder + "/" + each.file;
    int failure = files.write(path, each.value);
    if (failure != 0 && !(each.optional && (failure == ENOENT || failure == EACCES))) {
      return tl::unexpected{write_failure(path, each.value, failure)};
    }
  }
  return {};
}

bool looks_like_container_id(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The folder that the OCI runtime made for the container.
std::string container_folder(cgroup_files& files, const std::string& folder,
                             const std::string& cid) {
  auto inner = files.folders_in(folder);
  for (const auto& name : inner) {
    if (!cid.empty() && name == cid) {
      return folder + "/" + name;
    }
  }
  std::erase_if(inner, [](const auto& name) { return !looks_like_container_id(name); });
  return inner.size() == 1 && cid.empty() ? folder + "/" + inner.front() : std::string{};
}

void collect(cgroup_files& files, const std::string& folder, std::set<pid_t>& into) {
  std::istringstream pids{files.read(folder + "/cgroup.procs").value_or("")};
  for (pid_t pid = 0; pids >> pid;) {
    // 0 stands for a process of another pid namespace.
    if (pid > 0) {
      into.insert(pid);
    }
  }
  for (const auto& name : files.folders_in(folder)) {
    collect(files, folder + "/" + name, into);
  }
}

std::string above(const std::string& folder) {
  return folder.substr(0, folder.rfind('/'));
}

/// Is it INSTANCE/INSTANCE-ID, rather than a container's?
bool belongs_to_instance(const std::string& folder) {
  auto instance = above(folder);
  auto name = instance.substr(instance.rfind('/') + 1);
  return std::string_view{folder}.substr(instance.size() + 1).starts_with(name + "-");
}

bool remove_tree(cgroup_files& files, const std::string& folder) {
  for (const auto& name : files.folders_in(folder)) {
    remove_tree(files, folder + "/" + name);
  }
  int failure = files.remove_folder(folder);
  return failure == 0 || failure == ENOENT;
}

} // namespace

std::vector<cgroup_membership> read_cgroup_table(const std::string& table) {
  std::vector<cgroup_membership> result;
  std::istringstream lines{table};
  for (std::string line; std::getline(lines, line);) {
    auto first = line.find(':');
    auto second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) {
      continue;
    }
    auto& found = result.emplace_back();
    found.path = line.substr(second + 1);
    std::istringstream names{line.substr(first + 1, second - first - 1)};
    for (std::string name; std::getline(names, name, ',');) {
      found.controllers.push_back(name);
    }
  }
  return result;
}

std::shared_ptr<cgroup_files> real_cgroup_files() {
  return std::make_shared<kernel_cgroup_files>();
}

std::vector<cgroup_base> find_delegated_cgroups(const host_view& host) {
  std::vector<cgroup_base> result;
  if (cgroup_version(host) == "v2") {
    return result;
  }
  auto table = read_small_file(host.proc + "/self/cgroup").value_or("");
  for (const char* controller : controllers) {
    auto mount = host.cgroup_root + "/" + controller;
    std::vector<std::string> candidates = {mount + own_cgroup(table, controller)};
    if (!host.account.empty()) {
      candidates.push_back(mount + "/" + host.account);
    }
    candidates.push_back(mount + "/bulkhead");
    auto found = std::find_if(candidates.begin(), candidates.end(),
                              [&](const auto& path) { return host.cgroups->delegated(path); });
    if (found != candidates.end()) {
      result.push_back({controller, *found});
    }
  }
  return result;
}

bool has_controller(const std::vector<cgroup_base>& bases, std::string_view controller) {
  return std::any_of(bases.begin(), bases.end(),
                     [&](const auto& base) { return base.controller == controller; });
}

expected<std::vector<std::string>>
make_cgroups(cgroup_files& files, const std::vector<cgroup_base>& bases, const cgroup_name& name) {
  std::vector<std::string> result;
  std::vector<std::string> made;
  for (const auto& base : bases) {
    auto folder = fmt::format("{}/{}/{}", base.folder, name.instance, name.own);
    int failure = files.make_folder(above(folder));
    if (failure == 0 || failure == EEXIST) {
      failure = files.make_folder(folder);
    }
    if (failure != 0 && failure != EEXIST) {
      files.remove_folder(above(folder));
      remove_cgroups(files, made);
      return fail(errc::unavailable,
                  fmt::format("make the sandbox's cgroup \"{}\": {}", folder, strerror(failure)));
    }
    if (failure == 0) {
      made.push_back(folder);
    }
    result.push_back(std::move(folder));
  }
  return result;
}

expected<std::vector<std::string>> make_run_cgroups(cgroup_files& files,
                                                    const std::vector<cgroup_base>& bases,
                                                    const cgroup_name& name,
                                                    const cgroup_limits& limits) {
  // The quota waits for `confine_run_cgroups`, or it would slow the boot.
  cgroup_limits net{limits.memory + command_line_memory, limits.pids + command_line_pids, {}};
  auto folders = make_cgroups(files, bases, name);
  if (!folders) {
    return folders;
  }
  for (const auto& folder : *folders) {
    if (auto done = apply(files, folder, settings_for(folder, net)); !done) {
      remove_cgroups(files, *folders);
      return tl::unexpected{done.error()};
    }
  }
  return folders;
}

expected<void> confine_run_cgroups(cgroup_files& files, const std::vector<std::string>& folders,
                                   const std::string& cid, const cgroup_limits& limits,
                                   bool alone) {
  for (const auto& folder : folders) {
    auto settings = settings_for(folder, limits);
    if (settings.empty()) {
      continue;
    }
    auto inner = container_folder(files, folder, cid);
    if (inner.empty() && alone) {
      inner = folder;
    }
    if (inner.empty()) {
      return fail(errc::unavailable,
                  fmt::format("limit the sandbox: its container {} isn't in \"{}\"",
                              cid.empty() ? "(id unknown)" : cid, folder));
    }
    if (auto done = apply(files, inner, settings); !done) {
      return done;
    }
  }
  return {};
}

std::optional<bool> memory_ran_out_in(cgroup_files& files,
                                      const std::vector<std::string>& folders) {
  for (const auto& folder : folders) {
    if (!belongs_to(folder, "memory")) {
      continue;
    }
    std::istringstream fields{files.read(folder + "/memory.oom_control").value_or("")};
    std::string name;
    for (std::uint64_t value = 0; fields >> name >> value;) {
      if (name == "oom_kill") {
        return value > 0;
      }
    }
  }
  return std::nullopt;
}

std::vector<pid_t> processes_in(cgroup_files& files, const std::vector<std::string>& folders) {
  std::set<pid_t> result;
  for (const auto& folder : folders) {
    collect(files, folder, result);
  }
  return {result.begin(), result.end()};
}

void let_work(cgroup_files& files, const std::vector<std::string>& folders) {
  for (const auto& folder : folders) {
    if (belongs_to(folder, "cpu")) {
      files.write(folder + "/cpu.cfs_quota_us", "-1");
    }
    if (belongs_to(folder, "freezer")) {
      files.write(folder + "/freezer.state", "THAWED");
    }
    std::vector<std::string> inner;
    for (const auto& name : files.folders_in(folder)) {
      inner.push_back(folder + "/" + name);
    }
    let_work(files, inner);
  }
}

bool remove_cgroups(cgroup_files& files, const std::vector<std::string>& folders) {
  bool gone = true;
  for (const auto& folder : folders) {
    gone = remove_tree(files, folder) && gone;
    if (belongs_to_instance(folder)) {
      files.remove_folder(above(folder)); // fails while others are in it
    }
  }
  return gone;
}

void move_to_base(cgroup_files& files, const std::string& folder, pid_t pid) {
  files.write(above(above(folder)) + "/cgroup.procs", std::to_string(pid));
}

} // namespace bulkhead
