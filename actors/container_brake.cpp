#include "actors/container_brake.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "actors/cgroup_v1.hpp"
#include "actors/container_launch.hpp"
#include "actors/host_view.hpp"

namespace bulkhead {

namespace {

/// The longest period and the smallest quota that the kernel takes, in microseconds
/// (sched-bwc.rst).
constexpr const char* idle_period = "1000000";
constexpr const char* idle_quota = "1000";
constexpr const char* no_quota = "-1";

/// A name in a path below which there is one container only.
constexpr std::size_t least_id_length = 32;

std::string trimmed(std::string text) {
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return text;
}

/// The beginning of `path` up to the first folder whose name has `id` in it; empty: there is none,
/// or it is that of podman's monitor of the container (libpod-conmon-ID.scope).
std::string up_to(const std::string& path, const std::string& id) {
  auto found = id.size() < least_id_length ? std::string::npos : path.find(id);
  if (found == std::string::npos) {
    return {};
  }
  auto result = path.substr(0, path.find('/', found));
  auto name = result.substr(result.rfind('/') + 1);
  return name.find("conmon") == std::string::npos ? result : std::string{};
}

class cgroup_brake : public container_brake {
public:
  explicit cgroup_brake(host_view host) : host_{std::move(host)} {}

  container_cgroups find(const container_handle& container) override {
    auto cid = read_container_id(container.folder);
    auto pids = candidates(container);
    for (const auto& id : {cid, container.id}) {
      for (auto pid : pids) {
        auto found = cgroups_in(pid, id);
        if (found != container_cgroups{}) {
          return found;
        }
      }
    }
    return {};
  }

  container_hold hold(const container_cgroups& where) override {
    if (auto held = freeze(where.unified, "/cgroup.freeze", "1", "0")) {
      return *held;
    }
    if (auto held = freeze(where.freezer, "/freezer.state", "FROZEN", "THAWED")) {
      return *held;
    }
    return throttle(where.cpu);
  }

  bool release(const container_hold& held) override {
    bool done = true;
    for (const auto& [file, text] : held.undo) {
      int failure = host_.cgroups->write(file, text);
      // Of a container that has ended nothing is left to be let go.
      done = done && (failure == 0 || failure == ENOENT || failure == ENODEV);
    }
    return done;
  }

private:
  /// Processes among which are the container's.
  std::vector<pid_t> candidates(const container_handle& container) const {
    auto result = processes_in(*host_.cgroups, container.cgroups);
    std::error_code failure;
    using walk = std::filesystem::directory_iterator;
    if (!result.empty()) {
      return result;
    }
    for (walk entry{host_.proc, failure}; !failure && entry != walk{}; entry.increment(failure)) {
      auto name = entry->path().filename().string();
      pid_t pid = 0;
      auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (bad == std::errc{} && end == name.data() + name.size()) {
        result.push_back(pid);
      }
    }
    return result;
  }

  container_cgroups cgroups_in(pid_t pid, const std::string& id) const {
    container_cgroups result;
    auto table = read_small_file(fmt::format("{}/{}/cgroup", host_.proc, pid)).value_or("");
    for (const auto& [controllers, whole] : read_cgroup_table(table)) {
      auto path = up_to(whole, id);
      if (path.empty()) {
        continue;
      }
      if (controllers.empty()) {
        auto beside_v1 = cgroup_version(host_) != "v2";
        result.unified = host_.cgroup_root + (beside_v1 ? "/unified" : "") + path;
      }
      for (const auto& name : controllers) {
        auto* to = name == "freezer" ? &result.freezer : name == "cpu" ? &result.cpu : nullptr;
        if (to != nullptr) {
          *to = fmt::format("{}/{}{}", host_.cgroup_root, name, path);
        }
      }
    }
    return result;
  }

  std::optional<container_hold> freeze(const std::string& folder, const char* file, const char* on,
                                       const char* off) const {
    if (folder.empty() || host_.cgroups->write(folder + file, on) != 0) {
      return std::nullopt;
    }
    return container_hold{brake_kind::frozen, {{folder + file, off}}};
  }

  container_hold throttle(const std::string& folder) {
    auto quota_file = folder + "/cpu.cfs_quota_us";
    auto period_file = folder + "/cpu.cfs_period_us";
    auto quota = trimmed(host_.cgroups->read(quota_file).value_or(""));
    auto period = trimmed(host_.cgroups->read(period_file).value_or(""));
    if (folder.empty() || quota.empty() || period.empty()) {
      return {};
    }
    // In this order no pair on the way is refused, and the first write of the undoing lets go.
    container_hold held{brake_kind::throttled,
                        {{quota_file, no_quota}, {period_file, period}, {quota_file, quota}}};
    if (host_.cgroups->write(period_file, idle_period) != 0) {
      return {};
    }
    if (host_.cgroups->write(quota_file, idle_quota) != 0) {
      release(held);
      return {};
    }
    return held;
  }

  host_view host_;
};

} // namespace

std::string_view to_string(brake_kind kind) {
  switch (kind) {
  case brake_kind::frozen:
    return "frozen";
  case brake_kind::throttled:
    return "1 ms of CPU time in each second";
  case brake_kind::none:
    break;
  }
  return "not held back";
}

std::shared_ptr<container_brake> brake_on(host_view host) {
  return std::make_shared<cgroup_brake>(std::move(host));
}

std::shared_ptr<container_brake> real_container_brake() {
  static const auto brake = brake_on(host_view::real());
  return brake;
}

} // namespace bulkhead
