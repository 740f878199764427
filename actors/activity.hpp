#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/run_answer.hpp"

namespace bulkhead {

/// How far a run is.
enum class run_stage : std::uint8_t {
  queued,  ///< waits for its session or for a free place
  booting, ///< waits for its sandbox
  running, ///< its code runs
};

std::string_view to_string(run_stage stage);

/// Where a run's sandbox came from.
enum class sandbox_source : std::uint8_t {
  shelf, ///< it was booted before
  boot,  ///< it boots for the run
};

std::string_view to_string(sandbox_source source);

/// What there is to say of a run when it is asked for.
struct run_notice {
  std::string id;
  std::string client; ///< as it calls itself
  std::vector<std::string> servers;
  std::string trace; ///< id of the trace that it is a part of; empty: none
  bool in_session = false;
};

/// A run that goes on, for people.
struct running_run {
  run_notice what;
  std::string tenant;
  std::chrono::system_clock::time_point since; ///< it was asked for
  run_stage stage = run_stage::queued;
  std::uint64_t calls = 0; ///< of tools, by now
};

/// What a tenant has now.
struct tenant_now {
  std::string name;
  std::size_t runs = 0;     ///< that go on, queued ones too
  std::size_t sessions = 0; ///< interpreters that are kept
  std::size_t waiting = 0;  ///< sandboxes that wait booted
};

/// What a sweep removed of which kind.
struct swept_leaks {
  std::uint32_t containers = 0;
  std::uint32_t processes = 0;
  std::uint32_t cgroups = 0;
  std::uint32_t folders = 0;
};

/// Who counts. Called from any thread, in the middle of the work: it must be quick and throw
/// nothing.
class activity_listener {
public:
  virtual ~activity_listener() = default;

  virtual void run_admitted(const std::string& tenant, std::chrono::nanoseconds waited) = 0;
  virtual void run_ended(const std::string& tenant, run_status status,
                         std::chrono::nanoseconds took) = 0;
  /// It never began.
  virtual void run_refused(const std::string& tenant, run_status status) = 0;
  virtual void sandbox_taken(sandbox_source from) = 0;
  virtual void sandbox_booted(std::chrono::nanoseconds took) = 0;
  /// From the moment the call went to its server.
  virtual void tool_call_ended(std::string_view server, std::string_view outcome,
                               std::chrono::nanoseconds took) = 0;
  virtual void upstream_restarted(std::string_view server) = 0;
  virtual void leaks_swept(const swept_leaks& what) = 0;
  virtual void http_answered(std::uint32_t status) = 0;
  /// Nothing more is told of the tenant, unless it comes back.
  virtual void tenant_gone(const std::string& tenant) = 0;
};

class activity;
class run_watch;

/// What goes on in the whole process. Thread-safe.
class activity_board : public std::enable_shared_from_this<activity_board> {
public:
  /// `listener` may be null.
  activity_board(std::function<std::chrono::system_clock::time_point()> wall_clock,
                 std::shared_ptr<activity_listener> listener);

  /// What the actors of a tenant tell; the tenant is there until that and its runs are gone.
  std::shared_ptr<activity> tenant(std::string name);

  /// The runs that go on, the oldest first, of one tenant (empty: of all), so many at the most.
  std::vector<running_run> running(std::string_view of_tenant, std::size_t most) const;

  /// The tenants, by name.
  std::vector<tenant_now> tenants() const;

  void http_answered(std::uint32_t status) const;

private:
  friend class activity;
  friend class run_watch;

  void enter(const activity& tenant);
  void leave(const activity& tenant);
  void enter(run_watch& run);
  void leave(run_watch& run);

  std::function<std::chrono::system_clock::time_point()> wall_clock_;
  std::shared_ptr<activity_listener> listener_;
  mutable std::mutex mutex_;
  std::multimap<std::string, const activity*> tenants_; ///< a tenant may be there twice, as it ends
  std::uint64_t last_run_ = 0;
  std::map<std::uint64_t, run_watch*> runs_; ///< in the order in which they were asked for
};

/// One run, from the moment it is asked for. Whoever has a part in it tells here how it goes on;
/// thread-safe. A run of which nobody tells the end ends as an error when nobody holds this.
class run_watch {
public:
  /// For nobody: nothing comes of it.
  run_watch() = default;
  run_watch(std::shared_ptr<activity> of, run_notice what);
  ~run_watch();
  run_watch(const run_watch&) = delete;
  run_watch& operator=(const run_watch&) = delete;

  /// It has its place, and these servers.
  void admitted(std::chrono::nanoseconds waited, const std::vector<std::string>& servers);
  void code_runs();
  void called_tool();
  /// The first to tell counts.
  void ended(run_status status, std::chrono::nanoseconds took);

private:
  friend class activity_board;

  std::shared_ptr<activity> of_;
  running_run shown_; ///< but for stage and calls; under the board's lock
  std::uint64_t number_ = 0;
  std::atomic<run_stage> stage_ = run_stage::queued;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<bool> over_ = false;
};

/// What a tenant's actors tell of what they do. Thread-safe; telling takes a few atomic operations
/// or a short lock.
class activity : public std::enable_shared_from_this<activity> {
public:
  /// Nobody is told.
  activity() = default;
  activity(std::shared_ptr<activity_board> board, std::string tenant);
  ~activity();
  activity(const activity&) = delete;
  activity& operator=(const activity&) = delete;

  const std::string& tenant() const { return tenant_; }

  /// The tenant's runs that go on, the oldest first, so many at the most; none where nobody is
  /// told.
  std::vector<running_run> running(std::size_t most) const;

  /// Never null.
  std::shared_ptr<run_watch> run_asked(run_notice what);
  void run_refused(run_status status) const;
  void sandbox_taken(sandbox_source from) const;
  void sandbox_booted(std::chrono::nanoseconds took) const;
  void tool_call_ended(std::string_view server, std::string_view outcome,
                       std::chrono::nanoseconds took) const;
  void upstream_restarted(std::string_view server) const;
  void leaks_swept(const swept_leaks& what) const;

  /// So many interpreters are kept now.
  void sessions_are(std::size_t count);
  /// Where to ask how many sandboxes wait booted; called from any thread.
  void pool_is(std::function<std::size_t()> depth);

private:
  friend class activity_board;
  friend class run_watch;

  activity_listener* listener() const { return board_ ? board_->listener_.get() : nullptr; }

  std::shared_ptr<activity_board> board_;
  std::string tenant_;
  std::atomic<std::size_t> sessions_ = 0;
  std::function<std::size_t()> pool_depth_; ///< under the board's lock
};

} // namespace bulkhead
