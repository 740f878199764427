#pragma once

#include <optional>

#include "actors/messages.hpp"

namespace bulkhead {

/// Which limits are expected to be enforced.
struct limit_expectation {
  bool memory = false;
  bool pids = false;
};

/// What is expected of a combination of driver, engine, OCI runtime and cgroup mode; nothing where
/// it was never tried. A probe finds what really holds: this is what tests hold it to.
std::optional<limit_expectation> expected_limits(const runtime_report& report);

} // namespace bulkhead
