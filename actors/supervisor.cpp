#include "actors/supervisor.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/errors.hpp"
#include "actors/invocation.hpp"
#include "actors/sandbox.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t restart_budget = 5;
constexpr auto restart_window = 10min;
/// On an idle machine all is gone within a second or two. A client that waits no longer kills us;
/// who does wait gets no container left on a machine that is busy.
constexpr auto sessions_budget = 500ms;
constexpr auto sandboxes_budget = 15s;
constexpr auto runtime_budget = 4s;
constexpr auto folders_budget = 400ms;
constexpr auto ledger_budget = 1s;

} // namespace

supervisor_state::supervisor_state(supervisor_actor::pointer self) : self{self} {}

void supervisor_state::start_all() {
  auto add = [this](std::string what, auto make, auto service_directory::services::*slot) {
    leaves.push_back({std::move(what),
                      [this, make, slot] {
                        auto handle = make();
                        plan.services->update([&](auto& all) { all.*slot = handle; });
                        return handle.address();
                      },
                      {},
                      {}});
    start(leaves.back());
  };
  using services = service_directory::services;
  add("process host", plan.start_processes, &services::processes);
  add("HTTP host", plan.start_http, &services::http);
  if (plan.start_credentials) {
    add("credential store", plan.start_credentials, &services::credentials);
  }
  add("volume manager", plan.start_volumes, &services::volumes);
  add("container runtime", plan.start_runtime, &services::runtime);
  add("client registry", plan.start_registry, &services::registry);
  add("tool library", plan.start_library, &services::library);
  add("artifact store", plan.start_store, &services::store);
  add("admission", plan.start_admission, &services::admission);
  add("Python sessions", plan.start_sessions, &services::sessions);
  if (plan.start_ledger) {
    add("ledger", plan.start_ledger, &services::ledger);
  }
  if (plan.start_approvals) {
    add("approval store", plan.start_approvals, &services::approvals);
  }
  if (plan.start_pool) {
    auto start_pool = [this] { return plan.start_pool(supervisor_actor{self}); };
    add("sandbox pool", start_pool, &services::pool);
  }
}

void supervisor_state::start(leaf& which) {
  which.address = which.start();
  self->monitor(which.address);
}

void supervisor_state::died(const caf::down_msg& down) {
  if (sessions.erase(down.source) > 0 || sandboxes.erase(down.source) > 0) {
    advance_when_empty();
    return;
  }
  for (auto& which : leaves) {
    if (which.address == down.source && now == stage::running) {
      restart(which, caf::to_string(down.reason));
      return;
    }
  }
}

void supervisor_state::restart(leaf& which, const std::string& cause) {
  // Without these two nothing can be owned or bounded any more.
  auto core = which.what == "process host" || which.what == "admission";
  auto recent = self->clock().now() - restart_window;
  std::erase_if(which.restarts, [&](auto when) { return when < recent; });
  if (core || which.restarts.size() >= restart_budget) {
    if (std::exchange(failed, true)) {
      return;
    }
    plan.fatal(fmt::format("the {} failed{}: {}", which.what, core ? "" : " too often", cause));
    return;
  }
  plan.env->log->error("the {} failed and is started again: {}", which.what, cause);
  which.restarts.push_back(self->clock().now());
  start(which);
}

caf::result<caf::ok_atom> supervisor_state::stop() {
  if (now == stage::over) {
    return caf::ok_atom::value;
  }
  auto promise = self->make_response_promise<caf::ok_atom>();
  promises.push_back(promise);
  if (now == stage::running) {
    enter(stage::sessions);
    if (plan.about_to_stop) {
      plan.about_to_stop();
    }
    // It would replace the sandboxes that are about to end.
    if (auto pool = plan.services->get().pool) {
      self->send_exit(pool, caf::exit_reason::kill);
    }
    self->delayed_send(self, sessions_budget, tick_atom::value,
                       static_cast<std::uint64_t>(stage::sessions));
    for (const auto& [address, session] : sessions) {
      stop_session(session);
    }
    advance_when_empty();
  }
  return promise;
}

void supervisor_state::stop_session(const mcp_session_actor& session) {
  // Its end tells that it is gone, not its answer.
  self->request(session, sessions_budget, stop_atom::value)
      .then([](caf::ok_atom) {}, [](const caf::error&) {});
}

void supervisor_state::enter(stage next) {
  now = next;
  switch (next) {
  case stage::sandboxes:
    stop_sandboxes();
    break;
  case stage::folders:
    stop_runtime();
    break;
  case stage::over:
    for (auto& promise : promises) {
      promise.deliver(caf::ok_atom::value);
    }
    promises.clear();
    break;
  default:
    break;
  }
}

void supervisor_state::stop_sandboxes() {
  self->delayed_send(self, sandboxes_budget, tick_atom::value,
                     static_cast<std::uint64_t>(stage::sandboxes));
  for (const auto& [address, which] : sandboxes) {
    self->send(which, end_atom::value);
  }
  self->request(plan.services->get().registry, sandboxes_budget, stop_atom::value)
      .then(
          [this](caf::ok_atom) {
            registry_stopped = true;
            advance_when_empty();
          },
          [this](const caf::error& reason) {
            plan.env->log->error("{}", from_caf(reason, "stop the MCP servers").message);
            registry_stopped = true;
            advance_when_empty();
          });
}

void supervisor_state::stop_runtime() {
  auto go_on = [this] { stop_folders(); };
  self->request(plan.services->get().runtime, runtime_budget, stop_atom::value)
      .then([go_on](caf::ok_atom) { go_on(); },
            [this, go_on](const caf::error& reason) {
              plan.env->log->error("{}", from_caf(reason, "stop the container driver").message);
              go_on();
            });
}

void supervisor_state::stop_folders() {
  self->request(plan.services->get().volumes, folders_budget, stop_atom::value)
      .then([this](caf::ok_atom) { stop_ledger(); },
            [this](const caf::error& reason) {
              plan.env->log->error("{}", from_caf(reason, "remove the instance's folders").message);
              stop_ledger();
            });
}

void supervisor_state::stop_ledger() {
  auto ledger = plan.services->get().ledger;
  if (!ledger) {
    enter(stage::over);
    return;
  }
  self->request(ledger, ledger_budget, stop_atom::value)
      .then([this](caf::ok_atom) { enter(stage::over); },
            [this](const caf::error& reason) {
              plan.env->log->error("{}", from_caf(reason, "store the last records").message);
              enter(stage::over);
            });
}

void supervisor_state::advance_when_empty() {
  if (now == stage::sessions && sessions.empty()) {
    enter(stage::sandboxes);
  } else if (now == stage::sandboxes && sandboxes.empty() && registry_stopped) {
    enter(stage::folders);
  }
}

supervisor_actor::behavior_type supervisor_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { died(down); });
  start_all();
  return {
      [](ensure_atom) { return caf::ok_atom::value; },
      [this](create_atom, const mcp_session_actor& session) {
        sessions.emplace(session.address(), session);
        self->monitor(session);
        if (now != stage::running) {
          stop_session(session);
        }
      },
      [this](create_atom, const sandbox_actor& which) {
        sandboxes.emplace(which.address(), which);
        self->monitor(which);
        if (now != stage::running) {
          self->send(which, end_atom::value);
        }
      },
      [this](stop_atom) { return stop(); },
      [this](tick_atom, std::uint64_t of) {
        if (static_cast<stage>(of) != now) {
          return;
        }
        if (now == stage::sandboxes) {
          plan.env->log->error("stopping: {} sandboxes are left for the next start's sweep",
                               sandboxes.size());
        }
        enter(now == stage::sessions ? stage::sandboxes : stage::folders);
      },
  };
}

supervisor_actor::behavior_type
supervisor(supervisor_actor::stateful_pointer<supervisor_state> self, supervisor_plan plan) {
  self->state.plan = std::move(plan);
  return self->state.make_behavior();
}

std::function<sandbox_actor()>
make_sandbox_maker(caf::actor_system& system, const environment_ptr& env,
                   const std::shared_ptr<service_directory>& services,
                   const supervisor_actor& supervisor) {
  // Weak: the supervisor's pool has this, too.
  auto weak = caf::actor_cast<caf::actor_addr>(supervisor);
  return [&system, env, services, weak]() -> sandbox_actor {
    sandbox_actor made = system.spawn(
        sandbox, sandbox_context{env, services->get().processes,
                                 current(services, &service_directory::services::runtime),
                                 current(services, &service_directory::services::volumes),
                                 services->boots});
    if (auto known_to = caf::actor_cast<supervisor_actor>(weak)) {
      caf::anon_send(known_to, create_atom::value, made);
    }
    return made;
  };
}

run_starter make_run_starter(caf::actor_system& system, const environment_ptr& env,
                             const std::shared_ptr<service_directory>& services,
                             const supervisor_actor& supervisor, ledger_writer ledger) {
  auto rates = std::make_shared<call_rates>();
  env->activity->pool_is([shelf = std::weak_ptr{services->shelf}] {
    auto there = shelf.lock();
    return there ? there->size() : 0;
  });
  auto make_fresh = make_sandbox_maker(system, env, services, supervisor);
  auto make_sandbox = [env, services, make_fresh](bool booted_will_do) -> sandbox_actor {
    auto waiting = booted_will_do ? services->shelf->take() : sandbox_actor{};
    env->activity->sandbox_taken(waiting ? sandbox_source::shelf : sandbox_source::boot);
    if (auto pool = services->get().pool) {
      caf::anon_send(pool, taken_atom::value, waiting != nullptr);
    }
    return waiting ? waiting : make_fresh();
  };
  return [=, &system](const run_request& request) -> invocation_actor {
    auto all = services->get();
    invocation_context context{env,
                               all.registry,
                               all.library,
                               current(services, &service_directory::services::sessions),
                               make_sandbox,
                               all.store,
                               services->configured,
                               ledger,
                               {},
                               rates};
    if (all.approvals) {
      context.approvals = current(services, &service_directory::services::approvals);
    }
    return system.spawn(invocation, std::move(context), request);
  };
}

} // namespace bulkhead
