#pragma once

#include <memory>
#include <string>

#include "actors/activity.hpp"
#include "actors/memory_budget.hpp"

namespace bulkhead {

/// Counts what goes on, for Prometheus. Label sets are bounded: the first 200 servers and 1,000
/// tenants have series of their own, all others one together, "other"; a tenant that is gone loses
/// its own. Thread-safe.
class metrics final : public activity_listener {
public:
  metrics();
  ~metrics() override;

  /// The media type of what `render` gives.
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  /// All series in Prometheus's text format, with what `board` and `budget` (which may be null)
  /// say and what the kernel says of this process.
  std::string render(const activity_board& board, const memory_budget* budget) const;

  void run_admitted(const std::string& tenant, std::chrono::nanoseconds waited) override;
  void run_ended(const std::string& tenant, run_status status,
                 std::chrono::nanoseconds took) override;
  void run_refused(const std::string& tenant, run_status status) override;
  void sandbox_taken(sandbox_source from) override;
  void sandbox_booted(std::chrono::nanoseconds took) override;
  void tool_call_ended(std::string_view server, std::string_view outcome,
                       std::chrono::nanoseconds took) override;
  void upstream_restarted(std::string_view server) override;
  void leaks_swept(const swept_leaks& what) override;
  void http_answered(std::uint32_t status) override;
  void tenant_gone(const std::string& tenant) override;

private:
  struct series;
  std::unique_ptr<series> series_;
};

} // namespace bulkhead
