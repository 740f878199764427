#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages.hpp"

namespace bulkhead {

struct host_view;

/// How a container's processes are kept from working.
enum class brake_kind : std::uint8_t {
  none,      ///< not at all: none of the container's cgroups is ours to write
  throttled, ///< all together get 1 ms of one CPU in each second (cgroup v1, cpu)
  frozen,    ///< they get nothing (cgroup v2, or v1's freezer)
};

/// For people, e.g. in doctor's table.
std::string_view to_string(brake_kind kind);

/// The container's own cgroups, as far as it has any; empty where there is none. They hold the
/// container's processes and nothing else, but under gVisor also the engine's command.
struct container_cgroups {
  std::string unified; ///< cgroup v2, also beside v1
  std::string freezer; ///< v1
  std::string cpu;     ///< v1
  friend bool operator==(const container_cgroups&, const container_cgroups&) = default;
};

/// A container that is kept from working, and what to write to end that.
struct container_hold {
  brake_kind how = brake_kind::none;
  std::vector<std::pair<std::string, std::string>> undo; ///< files and texts, in this order
};

/// Keeps the processes of a container from working, from outside, whatever they are: a session's
/// interpreter has no business between its runs. Writes a few cgroup files and waits for nothing.
/// Thread-safe.
class container_brake {
public:
  virtual ~container_brake() = default;

  /// Where a running container's processes are. May read a file of each process of the machine, so
  /// that the answer should be kept.
  virtual container_cgroups find(const container_handle& container) = 0;

  /// Holds by the strongest means that is ours; what can't be had changes nothing.
  virtual container_hold hold(const container_cgroups& where) = 0;

  /// Lets the processes work again, at once. False if they still can't.
  virtual bool release(const container_hold& held) = 0;
};

std::shared_ptr<container_brake> brake_on(host_view host);

/// The one for this machine.
std::shared_ptr<container_brake> real_container_brake();

} // namespace bulkhead
