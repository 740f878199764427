#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "actors/container_brake.hpp"

namespace bulkhead::testing {

/// Takes note of what is held and let go, and how many frames the guest had got by then.
class scripted_brake : public container_brake {
public:
  struct event {
    bool hold = false; ///< else release
    std::size_t frames = 0;
    std::size_t removals = 0; ///< that the driver was asked for
    friend bool operator==(const event&, const event&) = default;
  };

  container_cgroups find(const container_handle& container) override {
    found.push_back(container.name);
    return {"/" + container.name, {}, {}};
  }
  container_hold hold(const container_cgroups& where) override {
    events.push_back({true, frames(), removals()});
    return {how, {{where.unified, "0"}}};
  }
  bool release(const container_hold& held) override {
    events.push_back({false, frames(), removals()});
    released.push_back(held.undo.front().first);
    return works;
  }

  bool holds() const { return !events.empty() && events.back().hold; }

  std::function<std::size_t()> frames = [] { return std::size_t{0}; };
  std::function<std::size_t()> removals = [] { return std::size_t{0}; };
  brake_kind how = brake_kind::frozen;
  bool works = true; ///< it can be released
  std::vector<event> events;
  std::vector<std::string> found;
  std::vector<std::string> released;
};

} // namespace bulkhead::testing
