#include "actors/expected_limits.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace bulkhead {

namespace {

struct row {
  std::string_view driver;
  std::string_view engine;
  std::string_view oci_runtime; ///< empty: any but those named in earlier rows
  std::string_view cgroup_mode;
  bool rootless;
  limit_expectation limits;
};

constexpr limit_expectation all{true, true};
constexpr limit_expectation none{false, false};

/// The first row that fits counts.
constexpr std::array table = {
    // gVisor without root is run with --ignore-cgroups, whoever starts it.
    row{"cli", "podman", "runsc", "v2", true, none},
    row{"cli", "podman", "runsc", "v1 delegated", true, none},
    row{"cli", "podman", "runsc", "v1", true, none},
    row{"cli", "podman", "", "v2", true, all},
    row{"cli", "podman", "", "v2", false, all},
    // The command line joins a cgroup of the run, in which the container's own is limited.
    row{"cli", "podman", "", "v1 delegated", true, all},
    row{"cli", "podman", "", "v1", true, none},
    row{"cli", "podman", "", "v1", false, all},
    row{"rest", "podman", "", "v2", true, all},
    row{"rest", "podman", "", "v2", false, all},
    // The service works in a delegated cgroup, in which each container's own is limited.
    row{"rest", "podman", "", "v1 delegated", true, all},
    row{"rest", "podman", "", "v1", true, none},
    row{"rest", "podman", "", "v1", false, all},
    row{"oci", "podman", "", "v2", true, all},
    row{"oci", "podman", "", "v2", false, all},
    row{"oci", "podman", "", "v1 delegated", true, all},
    row{"oci", "podman", "", "v1", true, none},
    row{"oci", "podman", "", "v1", false, all},
    row{"cli", "docker", "", "v2", true, all},
    row{"cli", "docker", "", "v2", false, all},
    row{"cli", "docker", "", "v1", true, none},
    row{"cli", "docker", "", "v1", false, all},
};

} // namespace

std::optional<limit_expectation> expected_limits(const runtime_report& report) {
  auto found = std::find_if(table.begin(), table.end(), [&](const row& each) {
    bool runtime = each.oci_runtime.empty() || report.oci_runtime.starts_with(each.oci_runtime);
    return each.driver == report.driver && each.engine == report.engine && runtime &&
           each.cgroup_mode == report.cgroup_mode && each.rootless == report.rootless;
  });
  return found == table.end() ? std::nullopt : std::optional{found->limits};
}

} // namespace bulkhead
