#include "actors/activity.hpp"

#include <utility>

#include "actors/environment.hpp"

namespace bulkhead {

std::string_view to_string(run_stage stage) {
  switch (stage) {
  case run_stage::queued:
    return "queued";
  case run_stage::booting:
    return "booting";
  case run_stage::running:
    break;
  }
  return "running";
}

std::string_view to_string(sandbox_source source) {
  return source == sandbox_source::shelf ? "shelf" : "boot";
}

std::shared_ptr<activity> no_activity() {
  return std::make_shared<activity>();
}

// -- the board -----------------------------------------------------------------------------------

activity_board::activity_board(std::function<std::chrono::system_clock::time_point()> wall_clock,
                               std::shared_ptr<activity_listener> listener)
    : wall_clock_{std::move(wall_clock)}, listener_{std::move(listener)} {}

std::shared_ptr<activity> activity_board::tenant(std::string name) {
  return std::make_shared<activity>(shared_from_this(), std::move(name));
}

std::vector<running_run> activity_board::running(std::string_view of_tenant,
                                                 std::size_t most) const {
  std::vector<running_run> result;
  std::lock_guard guard{mutex_};
  for (const auto& [number, run] : runs_) {
    if (result.size() == most) {
      break;
    }
    if (!of_tenant.empty() && run->shown_.tenant != of_tenant) {
      continue;
    }
    result.push_back(run->shown_);
    result.back().stage = run->stage_;
    result.back().calls = run->calls_;
  }
  return result;
}

std::vector<tenant_now> activity_board::tenants() const {
  std::vector<tenant_now> result;
  std::lock_guard guard{mutex_};
  for (const auto& [name, tenant] : tenants_) {
    if (result.empty() || result.back().name != name) {
      result.push_back({name, 0, 0, 0});
    }
    result.back().sessions += tenant->sessions_;
    result.back().waiting += tenant->pool_depth_ ? tenant->pool_depth_() : 0;
  }
  for (const auto& [number, run] : runs_) {
    for (auto& each : result) {
      each.runs += each.name == run->shown_.tenant ? 1 : 0;
    }
  }
  return result;
}

void activity_board::http_answered(std::uint32_t status) const {
  if (listener_) {
    listener_->http_answered(status);
  }
}

void activity_board::enter(const activity& tenant) {
  std::lock_guard guard{mutex_};
  tenants_.emplace(tenant.tenant_, &tenant);
}

void activity_board::leave(const activity& tenant) {
  std::lock_guard guard{mutex_};
  std::erase_if(tenants_, [&](const auto& each) { return each.second == &tenant; });
  // Under the lock, so that a tenant that comes back meanwhile isn't taken for gone.
  if (listener_ && !tenants_.contains(tenant.tenant_)) {
    listener_->tenant_gone(tenant.tenant_);
  }
}

void activity_board::enter(run_watch& run) {
  std::lock_guard guard{mutex_};
  run.number_ = ++last_run_;
  runs_.emplace(run.number_, &run);
}

void activity_board::leave(run_watch& run) {
  std::lock_guard guard{mutex_};
  runs_.erase(run.number_);
}

// -- a run ---------------------------------------------------------------------------------------

run_watch::run_watch(std::shared_ptr<activity> of, run_notice what)
    : of_{std::move(of)}, shown_{std::move(what), of_->tenant_, of_->board_->wall_clock_()} {
  of_->board_->enter(*this);
}

run_watch::~run_watch() {
  if (of_ && !over_) {
    ended(run_status::error, of_->board_->wall_clock_() - shown_.since);
  }
}

void run_watch::admitted(std::chrono::nanoseconds waited, const std::vector<std::string>& servers) {
  if (!of_) {
    return;
  }
  {
    std::lock_guard guard{of_->board_->mutex_};
    shown_.what.servers = servers;
  }
  stage_ = run_stage::booting;
  if (auto* listener = of_->listener()) {
    listener->run_admitted(of_->tenant_, waited);
  }
}

void run_watch::code_runs() {
  stage_ = run_stage::running;
}

void run_watch::called_tool() {
  calls_.fetch_add(1, std::memory_order_relaxed);
}

void run_watch::ended(run_status status, std::chrono::nanoseconds took) {
  if (!of_ || over_.exchange(true)) {
    return;
  }
  of_->board_->leave(*this);
  auto* listener = of_->listener();
  if (listener == nullptr) {
    return;
  }
  if (stage_ == run_stage::queued) {
    listener->run_refused(of_->tenant_, status);
  } else {
    listener->run_ended(of_->tenant_, status, took);
  }
}

// -- a tenant ------------------------------------------------------------------------------------

activity::activity(std::shared_ptr<activity_board> board, std::string tenant)
    : board_{std::move(board)}, tenant_{std::move(tenant)} {
  board_->enter(*this);
}

activity::~activity() {
  if (board_) {
    board_->leave(*this);
  }
}

std::shared_ptr<run_watch> activity::run_asked(run_notice what) {
  return board_ ? std::make_shared<run_watch>(shared_from_this(), std::move(what))
                : std::make_shared<run_watch>();
}

void activity::run_refused(run_status status) const {
  if (auto* to = listener()) {
    to->run_refused(tenant_, status);
  }
}

void activity::sandbox_taken(sandbox_source from) const {
  if (auto* to = listener()) {
    to->sandbox_taken(from);
  }
}

std::vector<running_run> activity::running(std::size_t most) const {
  return board_ ? board_->running(tenant_, most) : std::vector<running_run>{};
}

void activity::sandbox_booted(std::chrono::nanoseconds took) const {
  if (auto* to = listener()) {
    to->sandbox_booted(took);
  }
}

void activity::tool_call_ended(std::string_view server, std::string_view outcome,
                               std::chrono::nanoseconds took) const {
  if (auto* to = listener()) {
    to->tool_call_ended(server, outcome, took);
  }
}

void activity::upstream_restarted(std::string_view server) const {
  if (auto* to = listener()) {
    to->upstream_restarted(server);
  }
}

void activity::leaks_swept(const swept_leaks& what) const {
  if (auto* to = listener()) {
    to->leaks_swept(what);
  }
}

void activity::sessions_are(std::size_t count) {
  sessions_ = count;
}

void activity::pool_is(std::function<std::size_t()> depth) {
  if (board_) {
    std::lock_guard guard{board_->mutex_};
    pool_depth_ = std::move(depth);
  }
}

} // namespace bulkhead
