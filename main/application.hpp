#pragma once

#include <memory>
#include <optional>

#include "main/engine.hpp"
#include "main/shared_process.hpp"
#include "protocol/tenant_config.hpp"

namespace bulkhead {

/// A process with one engine: everything but the server for several tenants.
class application {
public:
  /// With `one`: as for that tenant of a server for many, by what is configured for it alone.
  /// Errors: unavailable (runtime folder, lock).
  static expected<std::unique_ptr<application>> start(const account& who, const settings& config,
                                                      stop_signal& stop,
                                                      const std::optional<tenant>& one = {});

  const environment_ptr& env() const { return engine_->env(); }
  catalogue_ptr catalogue() const { return engine_->catalogue(); }
  void watch_configuration() { engine_->watch_configuration(); }
  caf::actor_system& system() { return process_.system(); }
  io::io_thread& io() { return process_.io(); }
  service_directory::services services() const { return engine_->services(); }
  const run_starter& starter() const { return engine_->starter(); }
  session_context context_of_sessions() const { return engine_->context_of_sessions(); }
  int leave_with(int status) { return process_.leave_with(status); }
  bool failed() const { return process_.failed(); }

private:
  application(const settings& config, stop_signal& stop) : process_{config, stop} {}

  shared_process process_;
  std::unique_ptr<engine> engine_;
};

} // namespace bulkhead
