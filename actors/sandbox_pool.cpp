#include "actors/sandbox_pool.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// A sandbox bounds its own boot; this is for one that doesn't answer.
constexpr auto boot_patience = 300s;
constexpr auto stamp_patience = 10s;
/// How often the pool looks whether what it holds is still what it should hold.
constexpr auto look_pause = 5s;
/// Without a run that found the shelf empty for so long, one fewer is kept, down to the floor.
constexpr auto shrink_after = 60s;
/// A sandbox that waits does nothing, so that deaths beyond this are no accidents.
constexpr int most_deaths = 4;
/// Without any run for so long nothing is kept, unless it was asked for: a waiting sandbox holds
/// tens of MiB.
constexpr auto idle_after = 15min;

} // namespace

// -- the shelf -----------------------------------------------------------------------------------

sandbox_actor sandbox_shelf::take() {
  std::lock_guard guard{mutex_};
  if (waiting_.empty()) {
    return sandbox_actor{};
  }
  auto taken = std::move(waiting_.front());
  waiting_.pop_front();
  return taken;
}

void sandbox_shelf::put(sandbox_actor ready) {
  std::lock_guard guard{mutex_};
  waiting_.push_back(std::move(ready));
}

bool sandbox_shelf::remove(const caf::actor_addr& which) {
  std::lock_guard guard{mutex_};
  return std::erase_if(waiting_, [&](const auto& one) { return one.address() == which; }) > 0;
}

std::vector<sandbox_actor> sandbox_shelf::all() const {
  std::lock_guard guard{mutex_};
  return {waiting_.begin(), waiting_.end()};
}

std::size_t sandbox_shelf::size() const {
  std::lock_guard guard{mutex_};
  return waiting_.size();
}

// -- the pool ------------------------------------------------------------------------------------

sandbox_pool_state::sandbox_pool_state(sandbox_pool_impl_actor::pointer self) : self{self} {}

void sandbox_pool_state::start() {
  last_run = self->clock().now();
  // What an earlier pool left that failed: of unknown make, so the next look replaces it.
  for (const auto& waiting : context.shelf->all()) {
    self->monitor(waiting);
    stamps[waiting.address()];
  }
  if (context.env->config->pool.from_start || !stamps.empty()) {
    wanted = context.env->config->pool.floor;
    self->send(self, tick_atom::value);
    looking = true;
  }
}

void sandbox_pool_state::taken(bool from_shelf) {
  const auto& sizes = context.env->config->pool;
  auto now = self->clock().now();
  failing = false;
  deaths = 0;
  last_run = now;
  wanted = std::max<std::size_t>(wanted, sizes.floor);
  if (!from_shelf) {
    last_miss = now;
    wanted = std::min<std::size_t>(wanted + 1, sizes.ceiling);
  }
  refill();
}

void sandbox_pool_state::refill() {
  if (!booting && !failing && context.shelf->size() < wanted) {
    boot_one();
  }
  if (!looking && (wanted > 0 || context.shelf->size() > 0)) {
    looking = true;
    self->delayed_send(self, look_pause, tick_atom::value);
  }
}

void sandbox_pool_state::boot_one() {
  booting = true;
  auto made = context.make_sandbox();
  self->monitor(made);
  auto failed = [this, made](const caf::error& reason) {
    booting = false;
    failing = true;
    context.env->log->warn("no sandbox is kept ready: {}",
                           from_caf(reason, "boot a sandbox").message);
    self->send(made, end_atom::value);
  };
  auto boot = [this, made, failed](const std::string& stamp) {
    self->request(made, boot_patience, boot_atom::value)
        .then([this, made, stamp](caf::ok_atom) { booted(made, stamp); }, failed);
  };
  // The stamp is taken before the boot: what changes meanwhile makes the sandbox stale. There is
  // none before the engine has been found.
  self->request(context.runtime(), boot_patience, ensure_atom::value)
      .then(
          [this, boot, failed](const runtime_report&) {
            self->request(context.runtime(), stamp_patience, stamp_atom::value).then(boot, failed);
          },
          failed);
}

void sandbox_pool_state::booted(const sandbox_actor& which, std::string stamp) {
  booting = false;
  stamps[which.address()] = std::move(stamp);
  context.shelf->put(which);
  refill();
}

void sandbox_pool_state::look_around() {
  looking = false;
  shrink();
  self->request(context.runtime(), stamp_patience, stamp_atom::value)
      .then([this](const std::string& stamp) { compare(stamp); },
            [this](const caf::error&) { refill(); });
}

void sandbox_pool_state::shrink() {
  const auto& sizes = context.env->config->pool;
  auto now = self->clock().now();
  if (wanted > sizes.floor && now - last_miss > shrink_after) {
    --wanted;
    last_miss = now;
  }
  if (!sizes.from_start && now - last_run > idle_after) {
    wanted = 0;
  }
  auto waiting = context.shelf->all();
  for (std::size_t surplus = waiting.size() - std::min(waiting.size(), wanted); surplus > 0;
       --surplus) {
    drop(waiting[surplus - 1]);
  }
}

void sandbox_pool_state::compare(const std::string& stamp) {
  for (const auto& waiting : context.shelf->all()) {
    if (stamps[waiting.address()] != stamp) {
      drop(waiting);
    }
  }
  refill();
}

void sandbox_pool_state::died_waiting() {
  if (++deaths > most_deaths && !failing) {
    failing = true;
    context.env->log->warn(
        "sandboxes that wait die ({} since the last run): none is kept ready until the next run",
        deaths);
  }
  refill();
}

void sandbox_pool_state::drop(const sandbox_actor& which) {
  if (context.shelf->remove(which.address())) {
    self->send(which, end_atom::value);
  }
}

sandbox_pool_impl_actor::behavior_type sandbox_pool_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) {
    stamps.erase(down.source);
    if (context.shelf->remove(down.source)) {
      died_waiting();
    }
  });
  return {
      [this](taken_atom, bool from_shelf) { taken(from_shelf); },
      [this](tick_atom) { look_around(); },
  };
}

sandbox_pool_impl_actor::behavior_type
sandbox_pool(sandbox_pool_impl_actor::stateful_pointer<sandbox_pool_state> self,
             sandbox_pool_context context) {
  self->state.context = std::move(context);
  self->state.start();
  return self->state.make_behavior();
}

} // namespace bulkhead
