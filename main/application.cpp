#include "main/application.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/admission.hpp"
#include "actors/approval_store.hpp"
#include "actors/artifact_store.hpp"
#include "actors/client_registry.hpp"
#include "actors/container_runtime.hpp"
#include "actors/credential_store.hpp"
#include "actors/http_host.hpp"
#include "actors/http_transport.hpp"
#include "actors/ledger.hpp"
#include "actors/process_host.hpp"
#include "actors/python_sessions.hpp"
#include "actors/runtime_cache.hpp"
#include "actors/tool_library.hpp"
#include "actors/volume_manager.hpp"
#include "main/configuration.hpp"
#include "main/logging.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// The stages of the supervisor's stop end within 16 s; this is for a supervisor that hangs.
constexpr auto stop_budget = 18s;

constexpr std::size_t messages_at_a_time = 16;

/// `bytes` random bytes from the kernel, in hex.
std::string random_hex(std::size_t bytes) {
  std::array<unsigned char, 32> buffer{};
  if (::getrandom(buffer.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    std::abort();
  }
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    fmt::format_to(std::back_inserter(text), "{:02x}", buffer[i]);
  }
  return text;
}

/// Half the cores, four at the most: the actors of one call are quickest on one thread, and the
/// sandboxes, the servers and the I/O thread want the rest.
std::size_t worker_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
}

environment_ptr make_environment(const account& who, const settings& config,
                                 const std::string& runtime_dir, const std::string& instance) {
  auto env = std::make_shared<environment>();
  env->config = config;
  env->instance = instance;
  env->runtime_dir = runtime_dir;
  env->home = who.home;
  env->executable = own_executable();
  env->variable = environment_variable;
  env->new_handle = [] { return random_hex(16); };
  env->next_serial = [serial = std::make_shared<std::atomic<std::uint64_t>>(0)] {
    return serial->fetch_add(1, std::memory_order_relaxed) + 1;
  };
  env->wall_clock = [] { return std::chrono::system_clock::now(); };
  env->budget =
      std::make_shared<memory_budget>(env->bounds.memory_budget, env->bounds.memory_budget / 4);
  env->log = make_logger(config.log, config.log_as);
  return env;
}

} // namespace

expected<std::unique_ptr<application>>
application::start(const account& who, const settings& config, stop_signal& stop) {
  auto runtime_dir = make_runtime_dir(who);
  if (!runtime_dir) {
    return tl::unexpected{runtime_dir.error()};
  }
  auto instance = random_hex(8);
  auto lock = instance_lock::acquire(*runtime_dir, instance);
  if (!lock) {
    return tl::unexpected{lock.error()};
  }
  return std::unique_ptr<application>{
      new application{who, config, std::move(*lock), stop, *runtime_dir, instance}};
}

application::application(const account& who, const settings& config, instance_lock lock,
                         stop_signal& stop, const std::string& runtime_dir,
                         const std::string& instance)
    : lock_{std::move(lock)}, env_{make_environment(who, config, runtime_dir, instance)}, who_{who},
      io_{std::make_unique<io::io_thread>()}, services_{std::make_shared<service_directory>()},
      backlog_{std::make_shared<ledger_backlog>()}, failed_{std::make_shared<std::atomic<bool>>(
                                                        false)} {
  read_configuration();
  services_->configured = configured_;
  io_->adopt_orphans();
  config_.add_message_types<caf::id_block::bulkhead>();
  config_.add_message_types<caf::id_block::bulkhead_handles>();
  config_.add_message_types<caf::id_block::bulkhead_process_host>();
  config_.add_message_types<caf::id_block::bulkhead_http>();
  // Idle workers sleep instead of polling.
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", worker_count());
  // An actor with a full mailbox lets others have the worker now and then.
  config_.set("scheduler.max-throughput", messages_at_a_time);
  if (config.ledger != ledger_mode::off) {
    ledger_ = ledger_writer{current(services_, &service_directory::services::ledger), backlog_,
                            config.ledger};
  }
  system_ = std::make_unique<caf::actor_system>(config_);
  supervisor_ = system_->spawn(supervisor, make_plan(stop));
  caf::scoped_actor self{*system_};
  self->request(supervisor_, stop_budget, ensure_atom::value)
      .receive([](caf::ok_atom) {},
               [](const caf::error& reason) { throw std::runtime_error{caf::to_string(reason)}; });
  starter_ = make_run_starter(*system_, env_, services_, supervisor_, ledger_);
}

void application::read_configuration() {
  auto loaded = load_configuration(env_->config, who_, env_->executable);
  configured_ = std::make_shared<current_catalogue>(
      std::make_shared<server_catalogue>(std::move(loaded.catalogue)));
  dependencies_ = std::move(loaded.dependencies);
}

void application::watch_configuration() {
  keeper_context context{env_,
                         configured_,
                         current(services_, &service_directory::services::registry),
                         [env = env_, who = who_] {
                           auto loaded = load_configuration(env->config, who, env->executable);
                           return configuration_reading{
                               std::make_shared<server_catalogue>(std::move(loaded.catalogue)),
                               std::move(loaded.dependencies)};
                         },
                         {}};
  // The watch and the keeper know each other.
  auto keeper = std::make_shared<configuration_keeper_actor>();
  watch_ = io::file_watch::open(*io_, is_configuration_name,
                                [keeper] { caf::anon_send(*keeper, catalogue_atom::value); });
  context.watch = [watch = watch_](std::vector<std::string> paths) {
    watch->set(std::move(paths));
  };
  *keeper = system_->spawn<caf::detached>(configuration_keeper, std::move(context));
  keeper_ = keeper;
  watch_->set(std::move(dependencies_));
}

supervisor_plan application::make_plan(stop_signal& stop) {
  supervisor_plan plan;
  plan.env = env_;
  plan.services = services_;
  plan.start_processes = [this]() -> process_host_actor {
    return system_->spawn(process_host, io_.get(), env_->bounds);
  };
  plan.start_http = [this]() -> http_host_actor {
    return system_->spawn(http_host, io_.get(), env_->variable);
  };
  // Its files are few and small, but a disk may make it wait.
  plan.start_credentials = [this]() -> credential_store_actor {
    return system_->spawn<caf::detached>(credential_store, env_,
                                         current(services_, &service_directory::services::http));
  };
  // It reads and writes files all the time, so it has a thread of its own.
  plan.start_volumes = [this]() -> volume_manager_actor {
    return system_->spawn<caf::detached>(volume_manager, env_);
  };
  auto driver = std::make_shared<caf::actor_addr>();
  plan.start_runtime = [this, driver]() -> container_runtime_actor {
    auto made = system_->spawn(container_runtime, env_, services_->get().processes,
                               current(services_, &service_directory::services::volumes));
    *driver = made.address();
    return made;
  };
  plan.about_to_stop = [driver] {
    if (auto current = caf::actor_cast<container_runtime_impl_actor>(*driver)) {
      caf::anon_send(current, end_atom::value);
    }
  };
  plan.start_registry = [this]() -> client_registry_actor {
    return system_->spawn(
        client_registry, env_, services_->get().processes,
        mcp_http_services{current(services_, &service_directory::services::http),
                          current(services_, &service_directory::services::credentials)},
        configured_->get());
  };
  // Searches take processor time, so they don't take that of the workers.
  plan.start_library = [this]() -> tool_library_actor {
    return system_->spawn<caf::detached>(tool_library, env_, cache_folder(*env_) + "/documents");
  };
  // It waits for the disk.
  plan.start_store = [this]() -> artifact_store_actor {
    return system_->spawn<caf::detached>(artifact_store, env_);
  };
  if (env_->config.ledger != ledger_mode::off) {
    plan.start_ledger = [this]() -> ledger_actor {
      return system_->spawn<caf::detached>(bulkhead::ledger, env_, backlog_);
    };
  }
  plan.start_approvals = [this]() -> approval_store_actor {
    return system_->spawn<caf::detached>(approval_store, env_);
  };
  plan.start_admission = [this]() -> admission_actor { return system_->spawn(admission, env_); };
  plan.start_sessions = [this]() -> python_sessions_actor {
    return system_->spawn(python_sessions, env_);
  };
  if (env_->config.pool.ceiling > 0) {
    plan.start_pool = [this](const supervisor_actor& known_to) -> sandbox_pool_actor {
      auto make_sandbox = make_sandbox_maker(*system_, env_, services_, known_to);
      return system_->spawn(
          sandbox_pool,
          sandbox_pool_context{env_, services_->shelf,
                               current(services_, &service_directory::services::runtime),
                               make_sandbox});
    };
  }
  plan.fatal = [log = env_->log, failed = failed_, &stop](const std::string& what) {
    log->critical("{}; Bulkhead stops", what);
    *failed = true;
    stop.notify();
  };
  return plan;
}

session_context application::context_of_sessions() const {
  session_context context{env_,
                          services().admission,
                          current(services_, &service_directory::services::sessions),
                          [configured = configured_] { return configured->get(); },
                          starter_,
                          current(services_, &service_directory::services::store)};
  context.ledger = ledger_;
  context.configured = configured_;
  return context;
}

application::~application() {
  {
    caf::scoped_actor self{*system_};
    if (keeper_) {
      watch_->close();
      self->send_exit(*keeper_, caf::exit_reason::kill);
    }
    self->request(supervisor_, stop_budget, stop_atom::value)
        .receive([](caf::ok_atom) {},
                 [&](const caf::error& reason) {
                   env_->log->error("stop: {}", caf::to_string(reason));
                 });
    for (const auto& handle : {caf::actor_cast<caf::actor>(supervisor_),
                               caf::actor_cast<caf::actor>(services_->get().sessions),
                               caf::actor_cast<caf::actor>(services_->get().ledger),
                               caf::actor_cast<caf::actor>(services_->get().approvals),
                               caf::actor_cast<caf::actor>(services_->get().admission),
                               caf::actor_cast<caf::actor>(services_->get().store),
                               caf::actor_cast<caf::actor>(services_->get().library),
                               caf::actor_cast<caf::actor>(services_->get().registry),
                               caf::actor_cast<caf::actor>(services_->get().runtime),
                               caf::actor_cast<caf::actor>(services_->get().volumes),
                               caf::actor_cast<caf::actor>(services_->get().credentials),
                               caf::actor_cast<caf::actor>(services_->get().http),
                               caf::actor_cast<caf::actor>(services_->get().processes)}) {
      self->send_exit(handle, caf::exit_reason::kill);
    }
  }
  supervisor_ = nullptr;
  starter_ = nullptr;
  services_->update([](auto& all) { all = {}; });
  while (services_->shelf->take()) {
  }
  io_->stop();
  if (keeper_) {
    *keeper_ = nullptr; // nobody reads it any more
  }
  // All that was started is gone: an actor that doesn't end, or a machine too busy to let it, must
  // not keep the process.
  std::thread{[log = env_->log, status = exit_status_] {
    std::this_thread::sleep_for(2s);
    log->warn("stop: the actor system doesn't end; leaving");
    std::_Exit(status);
  }}.detach();
  system_.reset();
}

} // namespace bulkhead
