#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/shared_client.hpp"
#include "main/engine.hpp"
#include "main/shared_process.hpp"
#include "protocol/tenant_config.hpp"

namespace bulkhead {

class shared_registry;
class shared_files;

/// The MCP servers that are run once for several tenants, by an engine that runs nothing else, with
/// the folder STATE_DIR/shared. All else of the tenants' stays apart: their policies decide about
/// these servers' tools, and their ledgers and limits count the calls. For one thread that may
/// wait; what it gives away is thread-safe and outlives it.
class shared_servers {
public:
  /// `base` has what holds for the process.
  shared_servers(shared_process& process, account who, settings base, std::string runtime_dir);
  /// Stops them; whoever asks for one later is told that they aren't running.
  ~shared_servers();
  shared_servers(const shared_servers&) = delete;
  shared_servers& operator=(const shared_servers&) = delete;

  /// Runs the servers of that file from now on; empty: none. What can't be started is told to the
  /// log, and tried again with the next `apply`.
  void apply(const std::string& file);
  void begin_stop();

  /// The file; empty: there is none.
  const std::string& file() const { return file_; }
  /// By what a tenant's engine reaches them.
  shared_services services() const;
  /// Those that a tenant may use; nothing: none.
  std::optional<shared_file> part_of(const tenant& one) const;

private:
  expected<std::unique_ptr<engine>> start() const;
  trust allowed() const;

  shared_process& process_;
  account who_;
  settings base_;
  std::string runtime_dir_;
  std::string file_;
  std::shared_ptr<shared_files> files_;
  std::shared_ptr<shared_registry> registry_;
  std::shared_ptr<std::atomic<std::uint64_t>> calls_; ///< so far, of all tenants
  std::unique_ptr<engine> runs_;                      ///< null: nothing is shared
  std::vector<std::jthread> ending_;                  ///< each ends an engine
};

/// Tells the log of an engine what its configuration has of problems and remarks.
void log_problems(const engine& of);

} // namespace bulkhead
