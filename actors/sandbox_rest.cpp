// A kept interpreter between two runs.

#include "actors/sandbox.hpp"

#include <utility>

#include <caf/all.hpp>

namespace bulkhead {

/// The code ended and its interpreter is kept.
void sandbox_state::rest() {
  self->demonitor(owner.address());
  owner = nullptr;
  begun = false;
  used = true;
  for (auto cost : std::exchange(owed, {})) {
    give_credit(stream_id::out, cost);
  }
  out->charge_to(context.env->budget);
  enter(phase::idle, run.keep);
  hold();
}

/// Threads and processes of an ended run would work on for nobody, and be charged to nobody.
void sandbox_state::hold() {
  if (!cgroups) {
    cgroups = context.brake->find(container);
  }
  held = context.brake->hold(*cgroups);
  context.env->log->debug("sandbox {}: idle: {}", id, to_string(held->how));
}

bool sandbox_state::let_go() {
  auto what = std::exchange(held, {});
  return !what || context.brake->release(*what);
}

} // namespace bulkhead
