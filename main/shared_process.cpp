#include "main/shared_process.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <caf/all.hpp>

#include "actors/http_transport.hpp"
#include "main/logging.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t messages_at_a_time = 16;

/// Half the cores, four at the most: the actors of one call are quickest on one thread, and the
/// sandboxes, the servers and the I/O thread want the rest.
std::size_t worker_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
}

std::shared_ptr<memory_budget> make_budget() {
  auto total = limits{}.memory_budget;
  return std::make_shared<memory_budget>(total, total / 4);
}

} // namespace

shared_process::shared_process(const settings& config, stop_signal& stop, std::size_t workers)
    : log_{make_logger(config.log, config.log_as)}, budget_{make_budget()}, stop_{stop},
      io_{std::make_unique<io::io_thread>()} {
  io_->adopt_orphans();
  config_.add_message_types<caf::id_block::bulkhead>();
  config_.add_message_types<caf::id_block::bulkhead_handles>();
  config_.add_message_types<caf::id_block::bulkhead_process_host>();
  config_.add_message_types<caf::id_block::bulkhead_http>();
  // Idle workers sleep instead of polling.
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", std::max(worker_count(), workers));
  // An actor with a full mailbox lets others have the worker now and then.
  config_.set("scheduler.max-throughput", messages_at_a_time);
  system_ = std::make_unique<caf::actor_system>(config_);
}

void shared_process::count_activity() {
  figures_ = std::make_shared<metrics>();
  board_ =
      std::make_shared<activity_board>([] { return std::chrono::system_clock::now(); }, figures_);
}

void shared_process::fail(const std::string& what) {
  log_->critical("{}; Bulkhead stops", what);
  failed_ = true;
  stop_.notify();
}

shared_process::~shared_process() {
  io_->stop();
  // All that was started is gone: an actor that doesn't end, or a machine too busy to let it, must
  // not keep the process.
  std::thread{[log = log_, status = exit_status_] {
    std::this_thread::sleep_for(2s);
    log->warn("stop: the actor system doesn't end; leaving");
    std::_Exit(status);
  }}.detach();
  system_.reset();
}

} // namespace bulkhead
