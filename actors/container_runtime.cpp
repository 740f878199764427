#include "actors/container_runtime.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/constraint_probe.hpp"
#include "actors/container_drive.hpp"
#include "actors/container_launch.hpp"
#include "actors/errors.hpp"
#include "actors/probe_session.hpp"
#include "actors/rest_service.hpp"
#include "actors/runtime_cache.hpp"
#include "actors/sweeper.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// The first run goes before what dead instances left.
constexpr auto sweep_delay = 1s;
/// An exception inside a task is a fault of ours, and an answer all the same.
template <class T>
task<expected<T>> guarded(const char* what, task<expected<T>> work) {
  std::string fault;
  try {
    auto result = co_await work;
    co_return result;
  } catch (const std::exception& thrown) {
    fault = thrown.what();
  }
  co_return fail(errc::internal, fmt::format("{}: {}", what, fault));
}

template <class T>
task<void> answer(caf::typed_response_promise<T> promise, const char* what,
                  task<expected<T>> work) {
  auto result = co_await guarded(what, std::move(work));
  if (result) {
    promise.deliver(std::move(*result));
  } else {
    promise.deliver(to_caf(result.error()));
  }
}

task<void> answer(caf::typed_response_promise<caf::ok_atom> promise, const char* what,
                  task<expected<void>> work) {
  auto result = co_await guarded(what, std::move(work));
  if (result) {
    promise.deliver(caf::ok_atom::value);
  } else {
    promise.deliver(to_caf(result.error()));
  }
}

} // namespace

container_runtime_state::container_runtime_state(container_runtime_impl_actor::pointer self)
    : self{self} {}

// -- finding the engine --------------------------------------------------------------------------

task<expected<facts_ptr>> container_runtime_state::ensure(bool afresh) {
  if (facts && !afresh && found_under == &*context.env->config) {
    co_return facts;
  }
  completion<expected<facts_ptr>> found{[this, afresh](auto done) {
    waiting.push_back(std::move(done));
    if (!finding) {
      finding = true;
      tasks.start(find(afresh));
    }
  }};
  auto result = co_await found;
  co_return result;
}

task<void> container_runtime_state::find(bool afresh) {
  const auto* under = &*context.env->config;
  auto found = co_await guarded("find the container engine", find_runtime(context, afresh));
  finding = false;
  if (found) {
    found_under = under;
    facts = *found;
    last_facts = facts;
    for (const auto& warning : facts->report.warnings) {
      context.env->log->warn("{}", warning);
    }
    if (!swept) {
      swept = true;
      tasks.start(sweep_later());
    }
  }
  for (auto& each : std::exchange(waiting, {})) {
    each(found);
  }
}

task<void> container_runtime_state::sweep_later() {
  co_await context.pause(sweep_delay);
  auto swept_now = co_await guarded("sweep", sweep_now());
  if (!swept_now) {
    context.env->log->warn("{}", swept_now.error().message);
  }
}

task<expected<sweep_report>> container_runtime_state::sweep_now() {
  auto found = co_await ensure();
  if (!found) {
    co_return tl::unexpected{found.error()};
  }
  auto result = co_await sweep(context, *found);
  if (result != sweep_report{}) {
    context.env->activity->leaks_swept(
        {result.containers, result.processes, result.cgroups, result.folders});
    context.env->log->info(
        "removed what dead instances left: {} containers, {} processes, {} cgroups, "
        "{} folders",
        result.containers, result.processes, result.cgroups, result.folders);
  }
  co_return result;
}

task<expected<runtime_report>> container_runtime_state::report() {
  auto found = co_await ensure();
  if (!found) {
    co_return tl::unexpected{found.error()};
  }
  co_return (*found)->report;
}

task<expected<runtime_report>> container_runtime_state::probe() {
  auto found = co_await ensure(true);
  if (!found) {
    co_return tl::unexpected{found.error()};
  }
  auto result = co_await probe_constraints(context, *found);
  co_return result;
}

// -- a container's life --------------------------------------------------------------------------

task<expected<container_handle>> container_runtime_state::create(container_request request,
                                                                 child_owner_actor owner) {
  if (facts && facts->oci && facts->oci->stamp != sandbox_stamp(context, *facts)) {
    // The image's name may stand for another one by now, which no engine looks up here.
    facts = nullptr;
  }
  auto found = co_await ensure();
  if (!found) {
    co_return tl::unexpected{found.error()};
  }
  std::vector<std::string> command = {"python3", "-I", "-S", "/ipc/entrypoint.py"};
  auto limits = configured_limits(*context.env->config);
  stdio_owner stdio{std::move(owner), nullptr};
  auto record = co_await start_container(context, **found, std::move(request), limits,
                                         std::move(command), std::move(stdio));
  if (!record) {
    // The loss of a service says nothing of the engine.
    bool by_rest = (*found)->report.driver == rest_driver;
    if (record.error().code == errc::unavailable && (!by_rest || context.rest->connected())) {
      engine_failed();
    }
    co_return tl::unexpected{record.error()};
  }
  auto handle = record->handle;
  containers[handle.id] = std::move(*record);
  co_return handle;
}

expected<void> container_runtime_state::confine(const container_handle& handle) {
  auto found = containers.find(handle.id);
  if (found == containers.end()) {
    return fail(errc::not_found, fmt::format("limit container {}: it's unknown", handle.name));
  }
  found->second.booted = true;
  return confine_container(context, *last_facts, found->second);
}

task<expected<void>> container_runtime_state::destroy(container_handle handle) {
  auto id = handle.id;
  if (being_removed.contains(id)) {
    completion<expected<void>> removed{
        [this, id](auto done) { being_removed[id].push_back(std::move(done)); }};
    auto shared = co_await removed;
    co_return shared;
  }
  auto found = containers.find(id);
  container_record record;
  if (found != containers.end()) {
    record = found->second;
  } else {
    record.handle = std::move(handle);
  }
  auto used = last_facts;
  if (!used) {
    auto ensured = co_await ensure();
    if (!ensured) {
      co_return tl::unexpected{ensured.error()};
    }
    used = *ensured;
  }
  being_removed.emplace(id, std::vector<std::function<void(expected<void>)>>{});
  auto result = co_await guarded("remove a container", end_container(context, *used, record));
  if (result) {
    containers.erase(id);
  }
  auto others = std::move(being_removed[id]);
  being_removed.erase(id);
  for (auto& each : others) {
    each(result);
  }
  co_return result;
}

task<expected<void>> container_runtime_state::stop() {
  co_await context.rest->stop();
  co_return expected<void>{};
}

void container_runtime_state::engine_failed() {
  facts = nullptr;
  forget_probe(context);
}

container_runtime_impl_actor::behavior_type container_runtime_state::make_behavior() {
  return {
      [this](ensure_atom) -> caf::result<runtime_report> {
        auto promise = self->make_response_promise<runtime_report>();
        tasks.start(answer(promise, "find the container engine", report()));
        return promise;
      },
      [this](probe_atom) -> caf::result<runtime_report> {
        auto promise = self->make_response_promise<runtime_report>();
        tasks.start(answer(promise, "probe the container engine", probe()));
        return promise;
      },
      [this](create_atom, container_request& request,
             const child_owner_actor& owner) -> caf::result<container_handle> {
        auto promise = self->make_response_promise<container_handle>();
        tasks.start(answer(promise, "start a container", create(std::move(request), owner)));
        return promise;
      },
      [this](confine_atom, const container_handle& handle) -> caf::result<caf::ok_atom> {
        auto done = confine(handle);
        return done ? caf::result<caf::ok_atom>{caf::ok_atom::value}
                    : caf::result<caf::ok_atom>{to_caf(done.error())};
      },
      [this](classify_atom, const container_handle& handle, const child_exited& exit,
             std::string& diagnosis) -> caf::result<exit_verdict> {
        auto promise = self->make_response_promise<exit_verdict>();
        tasks.start(answer(promise, "find out why a container ended",
                           classify(handle, exit, std::move(diagnosis))));
        return promise;
      },
      [this](stamp_atom) -> caf::result<std::string> {
        return last_facts
                   ? caf::result<std::string>{sandbox_stamp(context, *last_facts)}
                   : caf::result<std::string>{to_caf(errc::unavailable, "no engine was found")};
      },
      [this](destroy_atom, const container_handle& handle) -> caf::result<caf::ok_atom> {
        auto promise = self->make_response_promise<caf::ok_atom>();
        tasks.start(answer(promise, "remove a container", destroy(handle)));
        return promise;
      },
      [this](sweep_atom) -> caf::result<sweep_report> {
        auto promise = self->make_response_promise<sweep_report>();
        tasks.start(answer(promise, "sweep", sweep_now()));
        return promise;
      },
      [this](stop_atom) -> caf::result<caf::ok_atom> {
        auto promise = self->make_response_promise<caf::ok_atom>();
        tasks.start(answer(promise, "end podman's service", stop()));
        return promise;
      },
      [this](const child_output& output) {
        if (auto found = context.sessions.find(output.id); found != context.sessions.end()) {
          found->second->take(output);
        } else {
          context.rest->take(output);
        }
      },
      [](const child_written&) {},
      [this](const child_exited& exit) {
        if (auto found = context.sessions.find(exit.id); found != context.sessions.end()) {
          found->second->take(exit);
        } else {
          context.rest->take(exit);
        }
      },
      [this](end_atom) { context.rest->hurry(); },
      [this](tick_atom, std::uint64_t number) {
        if (auto entry = pauses.extract(number)) {
          entry.mapped()(true);
        }
      },
  };
}

container_runtime_impl_actor::behavior_type
container_runtime(container_runtime_impl_actor::stateful_pointer<container_runtime_state> self,
                  environment_ptr env, process_host_actor processes,
                  std::function<volume_manager_actor()> volumes) {
  return container_runtime_on(self, std::move(env), std::move(processes), std::move(volumes),
                              host_view::real());
}

container_runtime_impl_actor::behavior_type
container_runtime_on(container_runtime_impl_actor::stateful_pointer<container_runtime_state> self,
                     environment_ptr env, process_host_actor processes,
                     std::function<volume_manager_actor()> volumes, host_view host) {
  auto& state = self->state;
  state.processes = std::move(processes);
  state.volumes = std::move(volumes);
  state.context.env = std::move(env);
  state.context.host = std::move(host);
  state.connect();
  return state.make_behavior();
}

} // namespace bulkhead
