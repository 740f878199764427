#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/container_removal.hpp"
#include "actors/driver_context.hpp"
#include "actors/environment.hpp"
#include "actors/errors.hpp"
#include "actors/interfaces.hpp"
#include "actors/runtime_probe.hpp"
#include "actors/task.hpp"

namespace bulkhead {

/// The driver owns the containers of its probes, besides the interface that all see.
using container_runtime_impl_actor =
    container_runtime_actor::extend<caf::reacts_to<child_output>, caf::reacts_to<child_written>,
                                    caf::reacts_to<child_exited>,
                                    /// Bulkhead is about to stop: nothing may keep it that hangs.
                                    caf::reacts_to<end_atom>,
                                    /// A pause of one of the driver's tasks is over.
                                    caf::reacts_to<tick_atom, std::uint64_t>>;

/// The driver of podman's and docker's command line, and of podman's REST service. Requests are
/// coroutines (see task.hpp) that this actor runs; what they share is `context`.
struct container_runtime_state {
  explicit container_runtime_state(container_runtime_impl_actor::pointer self);
  container_runtime_impl_actor::behavior_type make_behavior();

  void connect();
  template <class T, class Receiver, class... Ts>
  void ask(const Receiver& receiver, std::chrono::nanoseconds budget, std::string what,
           driver_services::callback<T> done, Ts&&... message);

  /// What is known of the engine; finds it if need be. All who ask meanwhile share one search.
  task<expected<facts_ptr>> ensure(bool afresh = false);
  task<void> find(bool afresh);
  task<void> sweep_later();
  task<expected<container_handle>> create(container_request request, child_owner_actor owner);
  expected<void> confine(const container_handle& handle);
  task<expected<exit_verdict>> classify(container_handle handle, child_exited exit,
                                        std::string diagnosis);
  task<bool> still_runs(container_handle handle);
  task<expected<void>> destroy(container_handle handle);
  task<expected<runtime_report>> probe();
  task<expected<runtime_report>> report();
  task<expected<sweep_report>> sweep_now();
  task<expected<void>> stop();
  void engine_failed();

  container_runtime_impl_actor::pointer self;
  process_host_actor processes;
  std::function<volume_manager_actor()> volumes; ///< the current one: it may be started again
  driver_context context;

  facts_ptr facts;                       ///< null until found, and again after a failed start
  facts_ptr last_facts;                  ///< what existing containers were made with
  const settings* found_under = nullptr; ///< the settings that `facts` were found out with
  bool finding = false;
  bool swept = false;
  std::vector<std::function<void(expected<facts_ptr>)>> waiting;
  std::unordered_map<std::string, container_record> containers;
  std::unordered_map<std::string, std::vector<std::function<void(expected<void>)>>> being_removed;
  std::uint64_t last_pause = 0;
  std::unordered_map<std::uint64_t, std::function<void(bool)>> pauses;
  /// Last, so that tasks end before what they use.
  task_set tasks;

  static inline const char* name = "container-runtime";
};

template <class T, class Receiver, class... Ts>
void container_runtime_state::ask(const Receiver& receiver, std::chrono::nanoseconds budget,
                                  std::string what, driver_services::callback<T> done,
                                  Ts&&... message) {
  self->request(receiver, budget, std::forward<Ts>(message)...)
      .then([done](T& result) { done(std::move(result)); },
            [done, what = std::move(what)](const caf::error& reason) {
              done(tl::unexpected{from_caf(reason, what)});
            });
}

container_runtime_impl_actor::behavior_type
container_runtime(container_runtime_impl_actor::stateful_pointer<container_runtime_state> self,
                  environment_ptr env, process_host_actor processes,
                  std::function<volume_manager_actor()> volumes);

/// The same on a host that a test has made up.
container_runtime_impl_actor::behavior_type
container_runtime_on(container_runtime_impl_actor::stateful_pointer<container_runtime_state> self,
                     environment_ptr env, process_host_actor processes,
                     std::function<volume_manager_actor()> volumes, host_view host);

} // namespace bulkhead
