#include "actors/admission.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <tuple>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

admission_rules admission_for_one(const environment_ptr& env) {
  admission_rules rules;
  rules.runs = [env]() -> std::size_t { return env->config->concurrent_runs; };
  rules.quota_of = [env](const std::string&) {
    return run_quota{env->config->concurrent_runs, env->bounds.admission_queue, {}};
  };
  rules.wall_clock = env->wall_clock;
  return rules;
}

admission_rules rules_for_boots() {
  std::size_t at_once = std::max(1u, std::thread::hardware_concurrency() / 2);
  admission_rules rules;
  rules.runs = [at_once] { return at_once; };
  // Runs wait for boots, and the pools: both are bounded.
  rules.quota_of = [at_once](const std::string&) {
    return run_quota{at_once, std::numeric_limits<std::size_t>::max(), {}};
  };
  rules.wall_clock = [] { return std::chrono::system_clock::now(); };
  return rules;
}

admission_state::admission_state(admission_impl_actor::pointer self) : self{self} {}

caf::result<std::uint64_t> admission_state::admit(const std::string& name, deadline due) {
  auto& asking = tenants[name];
  if (auto reason = refuse(name, asking)) {
    return to_caf(reason->code, reason->message);
  }
  request next{++last_number, self->current_sender(), self->make_response_promise<std::uint64_t>()};
  auto promise = next.promise;
  if (next.holder && !known(caf::actor_cast<caf::actor_addr>(next.holder))) {
    self->monitor(next.holder);
  }
  asking.waiting.push_back(std::move(next));
  admit_next();
  if (!asking.waiting.empty() && asking.waiting.back().number == last_number) {
    self->delayed_send(self, due.remaining(self->clock().now()), tick_atom::value, last_number);
    tell_load(name, asking);
  }
  return promise;
}

std::optional<error> admission_state::refuse(const std::string& name, tenant& of) const {
  auto quota = rules.quota_of(name);
  begin_day(of);
  if (quota.day && of.used >= *quota.day) {
    return error{errc::overloaded,
                 fmt::format("{:.0f} CPU-seconds were used today, and {:.0f} are allowed within a "
                             "day; try again after midnight UTC, or have the limit raised",
                             of.used, *quota.day)};
  }
  bool free = tickets.size() < rules.runs() && of.running < quota.runs && of.waiting.empty();
  if (!free && of.waiting.size() >= quota.queue) {
    return error{errc::overloaded,
                 fmt::format("{} runs go on and {} wait; try again when some have ended",
                             of.running, of.waiting.size())};
  }
  return std::nullopt;
}

void admission_state::grant(const std::string& name, tenant& of, request& to) {
  tickets.emplace(to.number,
                  ticket{name, caf::actor_cast<caf::actor_addr>(to.holder), self->clock().now()});
  ++of.running;
  of.last_turn = ++last_turn;
  to.promise.deliver(to.number);
}

void admission_state::release(std::uint64_t number) {
  if (auto found = tickets.find(number); found != tickets.end()) {
    auto holder = found->second.holder;
    end(found);
    forget(holder);
    admit_next();
  }
}

void admission_state::end(std::map<std::uint64_t, ticket>::iterator which) {
  const auto& [name, holder, since] = which->second;
  auto& of = tenants[name];
  begin_day(of);
  std::chrono::duration<double> time = self->clock().now() - since;
  of.used += time.count() * rules.quota_of(name).cpus;
  --of.running;
  tell_load(name, of);
  tickets.erase(which);
}

bool admission_state::known(const caf::actor_addr& holder) const {
  auto is_holder = [&](const auto& entry) { return entry.second.holder == holder; };
  auto is_waiting = [&](const request& entry) { return entry.holder == holder; };
  return std::any_of(tickets.begin(), tickets.end(), is_holder) ||
         std::any_of(tenants.begin(), tenants.end(), [&](const auto& each) {
           const auto& waiting = each.second.waiting;
           return std::any_of(waiting.begin(), waiting.end(), is_waiting);
         });
}

void admission_state::forget(const caf::actor_addr& holder) {
  // One demonitor ends all monitoring of an actor, so only the last thing it holds or waits for
  // may cause it.
  if (!known(holder)) {
    self->demonitor(holder);
  }
}

void admission_state::holder_died(const caf::actor_addr& holder) {
  for (auto& [name, of] : tenants) {
    std::erase_if(of.waiting, [&](const request& entry) { return entry.holder == holder; });
    tell_load(name, of);
  }
  for (auto each = tickets.begin(); each != tickets.end();) {
    auto next = std::next(each);
    if (each->second.holder == holder) {
      end(each);
    }
    each = next;
  }
  admit_next();
}

void admission_state::late(std::uint64_t number) {
  for (auto& [name, of] : tenants) {
    auto found = std::find_if(of.waiting.begin(), of.waiting.end(),
                              [&](const request& entry) { return entry.number == number; });
    if (found != of.waiting.end()) {
      found->promise.deliver(
          to_caf(errc::overloaded, "the run's turn didn't come before its deadline"));
      auto holder = caf::actor_cast<caf::actor_addr>(found->holder);
      of.waiting.erase(found);
      tell_load(name, of);
      forget(holder);
      return;
    }
  }
}

void admission_state::admit_next() {
  while (tickets.size() < rules.runs()) {
    auto next = next_tenant();
    if (next == tenants.end()) {
      return;
    }
    auto& [name, of] = *next;
    auto request = std::move(of.waiting.front());
    of.waiting.pop_front();
    grant(name, of, request);
    tell_load(name, of);
  }
}

admission_state::tenants_map::iterator admission_state::next_tenant() {
  auto best = tenants.end();
  for (auto each = tenants.begin(); each != tenants.end(); ++each) {
    const auto& of = each->second;
    if (of.waiting.empty() || of.running >= rules.quota_of(each->first).runs) {
      continue;
    }
    if (best == tenants.end() || std::tie(of.running, of.last_turn) <
                                     std::tie(best->second.running, best->second.last_turn)) {
      best = each;
    }
  }
  return best;
}

void admission_state::tell_load(const std::string& name, const tenant& of) const {
  rules.load->set(name, of.running, of.waiting.size());
}

void admission_state::begin_day(tenant& of) const {
  auto since = std::chrono::floor<std::chrono::days>(rules.wall_clock()).time_since_epoch();
  if (auto today = static_cast<std::int64_t>(since.count()); today != of.day) {
    of.day = today;
    of.used = 0;
  }
}

admission_impl_actor::behavior_type admission_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { holder_died(down.source); });
  return {
      [this](admit_atom, const std::string& tenant, deadline due) { return admit(tenant, due); },
      [this](release_atom, std::uint64_t ticket) { release(ticket); },
      [this](tick_atom, std::uint64_t number) { late(number); },
  };
}

admission_impl_actor::behavior_type
admission(admission_impl_actor::stateful_pointer<admission_state> self, admission_rules rules) {
  self->state.rules = std::move(rules);
  return self->state.make_behavior();
}

} // namespace bulkhead
