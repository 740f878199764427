#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/configuration_keeper.hpp"
#include "actors/current_catalogue.hpp"
#include "actors/environment.hpp"
#include "actors/instance.hpp"
#include "actors/io/file_watch.hpp"
#include "actors/ledger.hpp"
#include "actors/mcp_session.hpp"
#include "actors/supervisor.hpp"
#include "actors/web_page.hpp"
#include "main/account.hpp"
#include "main/configuration.hpp"
#include "main/shared_process.hpp"

namespace bulkhead {

/// Whose engine it is, and by what it works.
struct engine_options {
  account who;
  settings config;
  std::string runtime_dir; ///< of all engines of the account
  /// Where the process has several engines; its name stands in containers, logs and records.
  std::string tenant = {};
  load_options loading = {};
  /// Narrows what the configuration allows, each time that it is read. Null: it isn't narrowed.
  std::function<void(policy& rules)> narrow = {};
  /// Bounds the runs of all engines; null: this one's alone, by its settings.
  admission_actor admission = {};
  admission_actor boots = {}; ///< gives turns to boot; null: each sandbox boots at once
  std::shared_ptr<memory_budget> budget = {}; ///< null: the process's
  bool has_page = false;                      ///< people may look at its runs on the web page
};

/// What actors need of the world in this process.
environment_ptr make_environment(const shared_process& process, const engine_options& options,
                                 const std::string& instance);

/// What narrows an engine's configuration now. Thread-safe.
class current_rights {
public:
  explicit current_rights(std::function<void(policy&)> first) : narrow_{std::move(first)} {}

  void set(std::function<void(policy&)> next) {
    std::lock_guard guard{mutex_};
    narrow_ = std::move(next);
  }

  void narrow(policy& rules) const {
    std::lock_guard guard{mutex_};
    if (narrow_) {
      narrow_(rules);
    }
  }

private:
  mutable std::mutex mutex_;
  std::function<void(policy&)> narrow_;
};

/// All that runs code and calls tools for one user or one tenant: environment, configuration, the
/// tree of actors. Nothing of it is another engine's, so that no container, client process, handle
/// or record of one ever meets another's.
class engine {
public:
  /// Errors: unavailable (runtime folder, lock).
  static expected<std::unique_ptr<engine>> start(shared_process& process, engine_options options);
  /// Stops in stages, within seconds; see `supervisor`.
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Begins what the destructor waits for, so that several engines can stop at the same time.
  void begin_stop();

  const environment_ptr& env() const { return env_; }
  catalogue_ptr catalogue() const { return configured_->get(); }

  /// From now on changed configuration files are read anew, without a restart. Once.
  void watch_configuration();
  /// Other settings and rights hold from now on, for what begins from now on; needs a watched
  /// configuration. The folders and the container engine can't become others.
  void change_settings(settings config, std::function<void(policy& rules)> narrow);

  service_directory::services services() const { return services_->get(); }
  const supervisor_actor& tree() const { return supervisor_; }
  const run_starter& starter() const { return starter_; }
  /// What any client's session talks to; who serves that client adds what it has of its own.
  session_context context_of_sessions() const;
  /// What the web page shows of it to its owner, who is called that; only where it has the page.
  page_context context_of_page(std::string owner) const;

private:
  engine(shared_process& process, engine_options options, instance_lock lock,
         const std::string& instance);
  supervisor_plan make_plan();
  void plan_containers(supervisor_plan& plan);
  void plan_detached(supervisor_plan& plan);

  shared_process& process_;
  engine_options options_;
  std::shared_ptr<current_rights> rights_;
  instance_lock lock_;
  environment_ptr env_;
  std::vector<std::string> dependencies_; ///< of the configuration as it was read first
  std::shared_ptr<current_catalogue> configured_;
  std::shared_ptr<service_directory> services_;
  ledger_writer ledger_; ///< records nothing where none is wanted
  std::shared_ptr<ledger_backlog> backlog_;
  std::shared_ptr<run_book> book_; ///< null where nobody looks
  supervisor_actor supervisor_;
  run_starter starter_;
  configuration_keeper_actor keeper_; ///< null unless changes are watched for
  std::shared_ptr<io::file_watch> watch_;
};

} // namespace bulkhead
