#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/configuration_keeper.hpp"
#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/instance.hpp"
#include "actors/io/file_watch.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/mcp_session.hpp"
#include "actors/supervisor.hpp"
#include "main/account.hpp"
#include "main/stop_signal.hpp"

namespace bulkhead {

/// The running engine, whatever front end uses it: environment, actor system, tree. Made in the
/// order of its members and torn down in the reverse.
class application {
public:
  /// Errors: unavailable (runtime folder, lock).
  static expected<std::unique_ptr<application>> start(const account& who, const settings& config,
                                                      stop_signal& stop);
  /// Stops in stages, within seconds; see `supervisor`.
  ~application();
  application(const application&) = delete;
  application& operator=(const application&) = delete;

  const environment_ptr& env() const { return env_; }
  catalogue_ptr catalogue() const { return configured_->get(); }

  /// From now on changed configuration files are read anew, without a restart. Once.
  void watch_configuration();

  caf::actor_system& system() { return *system_; }
  io::io_thread& io() { return *io_; }
  service_directory::services services() const { return services_->get(); }
  const run_starter& starter() const { return starter_; }
  /// What any client's session talks to; who serves that client adds what it has of its own.
  session_context context_of_sessions() const;

  /// The status that the process will end with, also when the actors don't end in time. Answers it.
  int leave_with(int status) {
    exit_status_ = status;
    return status;
  }

  /// A core actor failed: the process has to end with status 1.
  bool failed() const { return *failed_; }

private:
  application(const account& who, const settings& config, instance_lock lock, stop_signal& stop,
              const std::string& runtime_dir, const std::string& instance);
  void read_configuration();
  supervisor_plan make_plan(stop_signal& stop);

  instance_lock lock_;
  environment_ptr env_;
  account who_;
  std::vector<std::string> dependencies_; ///< of the configuration as it was read first
  std::shared_ptr<current_catalogue> configured_;
  std::unique_ptr<io::io_thread> io_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<service_directory> services_;
  ledger_writer ledger_; ///< records nothing where none is wanted
  std::shared_ptr<ledger_backlog> backlog_;
  std::shared_ptr<std::atomic<bool>> failed_;
  int exit_status_ = 0;
  supervisor_actor supervisor_;
  run_starter starter_;
  std::shared_ptr<configuration_keeper_actor> keeper_; ///< null unless changes are watched for
  std::shared_ptr<io::file_watch> watch_;
};

} // namespace bulkhead
