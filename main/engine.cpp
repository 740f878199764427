#include "main/engine.hpp"

#include <atomic>
#include <filesystem>
#include <stdexcept>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/admission.hpp"
#include "actors/approval_store.hpp"
#include "actors/artifact_store.hpp"
#include "actors/client_registry.hpp"
#include "actors/container_runtime.hpp"
#include "actors/credential_store.hpp"
#include "actors/http_host.hpp"
#include "actors/ledger.hpp"
#include "actors/process_host.hpp"
#include "actors/python_sessions.hpp"
#include "actors/runtime_cache.hpp"
#include "actors/tool_library.hpp"
#include "actors/volume_manager.hpp"
#include "main/configuration.hpp"
#include "main/logging.hpp"
#include "main/randomness.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// The stages of the supervisor's stop end within 16 s; this is for a supervisor that hangs.
constexpr auto stop_budget = 18s;
constexpr auto last_wait = 1s;
/// Runs that go on whose tool calls the page counts.
constexpr std::size_t most_counted = 256;

configuration_reading read_configuration(const environment& env, const engine_options& options,
                                         const current_rights& rights) {
  auto loaded = load_configuration(*env.config, options.who, env.executable, options.loading);
  rights.narrow(loaded.catalogue.rules);
  return {std::make_shared<server_catalogue>(std::move(loaded.catalogue)),
          std::move(loaded.dependencies)};
}

/// What is known of servers from earlier; of one tenant's, no other learns.
std::string documents_folder(const environment& env) {
  auto cache = env.tenant.empty() ? cache_folder(env) : env.config->state_dir + "/cache";
  return cache + "/documents";
}

} // namespace

environment_ptr make_environment(const shared_process& process, const engine_options& options,
                                 const std::string& instance) {
  auto env = std::make_shared<environment>();
  env->config.replace(options.config);
  env->tenant = options.tenant;
  env->instance = instance;
  env->runtime_dir = options.runtime_dir;
  env->home = options.who.home;
  env->executable = own_executable();
  env->variable = environment_variable;
  env->new_handle = [] { return random_hex(16); };
  env->next_serial = [serial = std::make_shared<std::atomic<std::uint64_t>>(0)] {
    return serial->fetch_add(1, std::memory_order_relaxed) + 1;
  };
  env->wall_clock = [] { return std::chrono::system_clock::now(); };
  env->budget = options.budget ? options.budget : process.budget();
  env->log =
      options.tenant.empty() ? process.log() : logger_of_tenant(*process.log(), options.tenant);
  // What is no tenant's has no series of its own.
  if (process.board() && !options.tenant.empty()) {
    env->activity = process.board()->tenant(options.tenant);
  }
  return env;
}

expected<std::unique_ptr<engine>> engine::start(shared_process& process, engine_options options) {
  auto instance = random_hex(8);
  auto lock = instance_lock::acquire(options.runtime_dir, instance);
  if (!lock) {
    return tl::unexpected{lock.error()};
  }
  return std::unique_ptr<engine>{
      new engine{process, std::move(options), std::move(*lock), instance}};
}

engine::engine(shared_process& process, engine_options options, instance_lock lock,
               const std::string& instance)
    : process_{process}, options_{std::move(options)}, rights_{std::make_shared<current_rights>(
                                                           options_.narrow)},
      lock_{std::move(lock)}, env_{make_environment(process_, options_, instance)},
      services_{std::make_shared<service_directory>()}, backlog_{
                                                            std::make_shared<ledger_backlog>()} {
  if (options_.has_page) {
    book_ = std::make_shared<run_book>(env_->budget);
  }
  auto loaded = read_configuration(*env_, options_, *rights_);
  configured_ = std::make_shared<current_catalogue>(std::move(loaded.catalogue));
  dependencies_ = std::move(loaded.dependencies);
  services_->configured = configured_;
  services_->boots = options_.boots;
  if (env_->config->ledger != ledger_mode::off) {
    ledger_ = ledger_writer{current(services_, &service_directory::services::ledger), backlog_,
                            env_->config->ledger};
  }
  supervisor_ = process_.system().spawn(supervisor, make_plan());
  caf::scoped_actor self{process_.system()};
  self->request(supervisor_, stop_budget, ensure_atom::value)
      .receive([](caf::ok_atom) {},
               [](const caf::error& reason) { throw std::runtime_error{caf::to_string(reason)}; });
  starter_ = make_run_starter(process_.system(), env_, services_, supervisor_, ledger_);
}

void engine::watch_configuration() {
  keeper_context context{env_,
                         configured_,
                         current(services_, &service_directory::services::registry),
                         [env = env_, options = options_, rights = rights_] {
                           return read_configuration(*env, options, *rights);
                         },
                         {}};
  // The watch and the keeper know each other; it is told before it has anything to watch.
  auto keeper = std::make_shared<caf::actor_addr>();
  watch_ = io::file_watch::open(process_.io(), is_configuration_name, [keeper] {
    if (auto living = caf::actor_cast<configuration_keeper_actor>(*keeper)) {
      caf::anon_send(living, catalogue_atom::value);
    }
  });
  context.watch = [watch = watch_](std::vector<std::string> paths) {
    watch->set(std::move(paths));
  };
  keeper_ = process_.system().spawn<caf::detached>(configuration_keeper, std::move(context));
  *keeper = keeper_.address();
  watch_->set(std::move(dependencies_));
}

void engine::change_settings(settings config, std::function<void(policy& rules)> narrow) {
  env_->config.replace(std::move(config));
  rights_->set(std::move(narrow));
  caf::anon_send(keeper_, catalogue_atom::value);
}

supervisor_plan engine::make_plan() {
  supervisor_plan plan;
  plan.env = env_;
  plan.services = services_;
  plan.start_processes = [this]() -> process_host_actor {
    return process_.system().spawn(process_host, &process_.io(), env_->bounds);
  };
  plan.start_http = [this]() -> http_host_actor {
    return process_.system().spawn(http_host, &process_.io(), env_->variable);
  };
  plan.start_registry = [this]() -> client_registry_actor {
    return process_.system().spawn(
        client_registry, env_, services_->get().processes,
        mcp_http_services{current(services_, &service_directory::services::http),
                          current(services_, &service_directory::services::credentials)},
        configured_->get());
  };
  plan.start_admission = [this]() -> admission_actor {
    if (options_.admission) {
      return options_.admission;
    }
    return process_.system().spawn(admission, admission_for_one(env_));
  };
  plan.start_sessions = [this]() -> python_sessions_actor {
    return process_.system().spawn(python_sessions, env_);
  };
  plan_containers(plan);
  plan_detached(plan);
  plan.fatal = [this](const std::string& what) { process_.fail(what); };
  return plan;
}

void engine::plan_containers(supervisor_plan& plan) {
  auto driver = std::make_shared<caf::actor_addr>();
  plan.start_runtime = [this, driver]() -> container_runtime_actor {
    auto made = process_.system().spawn(container_runtime, env_, services_->get().processes,
                                        current(services_, &service_directory::services::volumes));
    *driver = made.address();
    return made;
  };
  plan.about_to_stop = [driver] {
    if (auto current = caf::actor_cast<container_runtime_impl_actor>(*driver)) {
      caf::anon_send(current, end_atom::value);
    }
  };
  if (env_->config->pool.ceiling > 0) {
    plan.start_pool = [this](const supervisor_actor& known_to) -> sandbox_pool_actor {
      auto make_sandbox = make_sandbox_maker(process_.system(), env_, services_, known_to);
      return process_.system().spawn(
          sandbox_pool,
          sandbox_pool_context{env_, services_->shelf,
                               current(services_, &service_directory::services::runtime),
                               make_sandbox});
    };
  }
}

/// Those with a thread of their own: they wait for the disk, or take processor time that isn't to
/// be the workers'.
void engine::plan_detached(supervisor_plan& plan) {
  auto& system = process_.system();
  plan.start_credentials = [this, &system]() -> credential_store_actor {
    return system.spawn<caf::detached>(credential_store, env_,
                                       current(services_, &service_directory::services::http));
  };
  plan.start_volumes = [this, &system]() -> volume_manager_actor {
    return system.spawn<caf::detached>(volume_manager, env_);
  };
  plan.start_library = [this, &system]() -> tool_library_actor {
    return system.spawn<caf::detached>(tool_library, env_, documents_folder(*env_));
  };
  plan.start_store = [this, &system]() -> artifact_store_actor {
    return system.spawn<caf::detached>(artifact_store, env_);
  };
  if (env_->config->ledger != ledger_mode::off) {
    plan.start_ledger = [this, &system]() -> ledger_actor {
      return system.spawn<caf::detached>(bulkhead::ledger, env_, backlog_);
    };
  }
  plan.start_approvals = [this, &system]() -> approval_store_actor {
    return system.spawn<caf::detached>(approval_store, env_);
  };
}

session_context engine::context_of_sessions() const {
  session_context context{env_,
                          services().admission,
                          current(services_, &service_directory::services::sessions),
                          [configured = configured_] { return configured->get(); },
                          starter_,
                          current(services_, &service_directory::services::store)};
  context.ledger = ledger_;
  context.configured = configured_;
  context.book = book_;
  return context;
}

page_context engine::context_of_page(std::string owner) const {
  page_context context;
  context.env = env_;
  context.owner = std::move(owner);
  context.book = book_;
  context.catalogue = [configured = configured_] { return configured->get(); };
  context.registry = current(services_, &service_directory::services::registry);
  context.sessions = current(services_, &service_directory::services::sessions);
  context.store = current(services_, &service_directory::services::store);
  context.ledger = current(services_, &service_directory::services::ledger);
  context.calls = [env = env_] {
    std::map<std::string, std::uint64_t> calls;
    for (const auto& run : env->activity->running(most_counted)) {
      calls.emplace(run.what.id, run.calls);
    }
    return calls;
  };
  context.ready_sandboxes = [services = services_] { return services->shelf->size(); };
  return context;
}

void engine::begin_stop() {
  // It answers whoever asks, also the destructor, when all is gone.
  caf::anon_send(supervisor_, stop_atom::value);
}

engine::~engine() {
  caf::scoped_actor self{process_.system()};
  if (keeper_) {
    watch_->close();
    self->send_exit(keeper_, caf::exit_reason::kill);
  }
  self->request(supervisor_, stop_budget, stop_atom::value)
      .receive(
          [](caf::ok_atom) {},
          [&](const caf::error& reason) { env_->log->error("stop: {}", caf::to_string(reason)); });
  auto all = services_->get();
  if (options_.admission) {
    all.admission = nullptr; // others go on with it
  }
  // It calls what is ours until it has ended.
  self->monitor(supervisor_);
  for (const auto& handle :
       {caf::actor_cast<caf::actor>(supervisor_), caf::actor_cast<caf::actor>(all.sessions),
        caf::actor_cast<caf::actor>(all.ledger), caf::actor_cast<caf::actor>(all.approvals),
        caf::actor_cast<caf::actor>(all.admission), caf::actor_cast<caf::actor>(all.store),
        caf::actor_cast<caf::actor>(all.library), caf::actor_cast<caf::actor>(all.registry),
        caf::actor_cast<caf::actor>(all.runtime), caf::actor_cast<caf::actor>(all.volumes),
        caf::actor_cast<caf::actor>(all.credentials), caf::actor_cast<caf::actor>(all.http),
        caf::actor_cast<caf::actor>(all.processes)}) {
    self->send_exit(handle, caf::exit_reason::kill);
  }
  self->receive([](const caf::down_msg&) {}, caf::after(last_wait) >> [] {});
  services_->update([](auto& each) { each = {}; });
  while (services_->shelf->take()) {
  }
}

} // namespace bulkhead
