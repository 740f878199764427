#include "actors/admission.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

admission_state::admission_state(admission_impl_actor::pointer self) : self{self} {}

caf::result<std::uint64_t> admission_state::admit(deadline due) {
  request next{++last_number, self->current_sender(), {}};
  auto full = tickets.size() >= env->config.concurrent_runs;
  if (full && waiting.size() >= env->bounds.admission_queue) {
    return to_caf(errc::overloaded,
                  fmt::format("{} runs go on and {} wait; try again when some have ended",
                              tickets.size(), waiting.size()));
  }
  next.promise = self->make_response_promise<std::uint64_t>();
  if (next.holder && !known(caf::actor_cast<caf::actor_addr>(next.holder))) {
    self->monitor(next.holder);
  }
  auto promise = next.promise;
  if (!full) {
    grant(next);
    return promise;
  }
  self->delayed_send(self, due.remaining(self->clock().now()), tick_atom::value, next.number);
  waiting.push_back(std::move(next));
  return promise;
}

void admission_state::grant(request& to) {
  tickets.emplace(to.number, caf::actor_cast<caf::actor_addr>(to.holder));
  to.promise.deliver(to.number);
}

void admission_state::release(std::uint64_t ticket) {
  if (auto found = tickets.find(ticket); found != tickets.end()) {
    auto holder = found->second;
    tickets.erase(found);
    forget(holder);
    admit_next();
  }
}

bool admission_state::known(const caf::actor_addr& holder) const {
  auto is_holder = [&](const auto& entry) { return entry.second == holder; };
  auto is_waiting = [&](const request& entry) { return entry.holder == holder; };
  return std::any_of(tickets.begin(), tickets.end(), is_holder) ||
         std::any_of(waiting.begin(), waiting.end(), is_waiting);
}

void admission_state::forget(const caf::actor_addr& holder) {
  // One demonitor ends all monitoring of an actor, so only the last thing it holds or waits for
  // may cause it.
  if (!known(holder)) {
    self->demonitor(holder);
  }
}

void admission_state::holder_died(const caf::actor_addr& holder) {
  std::erase_if(waiting, [&](const request& entry) { return entry.holder == holder; });
  std::erase_if(tickets, [&](const auto& entry) { return entry.second == holder; });
  admit_next();
}

void admission_state::admit_next() {
  while (!waiting.empty() && tickets.size() < env->config.concurrent_runs) {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    grant(next);
  }
}

admission_impl_actor::behavior_type admission_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { holder_died(down.source); });
  return {
      [this](admit_atom, deadline due) { return admit(due); },
      [this](release_atom, std::uint64_t ticket) { release(ticket); },
      [this](tick_atom, std::uint64_t number) {
        auto late = std::find_if(waiting.begin(), waiting.end(),
                                 [&](const request& entry) { return entry.number == number; });
        if (late != waiting.end()) {
          late->promise.deliver(
              to_caf(errc::overloaded, "the run's turn didn't come before its deadline"));
          auto holder = caf::actor_cast<caf::actor_addr>(late->holder);
          waiting.erase(late);
          forget(holder);
        }
      },
  };
}

admission_impl_actor::behavior_type
admission(admission_impl_actor::stateful_pointer<admission_state> self, environment_ptr env) {
  self->state.env = std::move(env);
  return self->state.make_behavior();
}

} // namespace bulkhead
