#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "actors/activity.hpp"

namespace bulkhead::testing {

/// Notes what an `activity_listener` is told, a line each; times in milliseconds.
class activity_log : public activity_listener {
public:
  std::vector<std::string> lines() const {
    std::lock_guard guard{mutex_};
    return lines_;
  }

  void run_admitted(const std::string& tenant, std::chrono::nanoseconds waited) override {
    note(fmt::format("{} admitted {}", tenant, ms(waited)));
  }
  void run_ended(const std::string& tenant, run_status status,
                 std::chrono::nanoseconds took) override {
    note(fmt::format("{} ended {} {}", tenant, to_string(status), ms(took)));
  }
  void run_refused(const std::string& tenant, run_status status) override {
    note(fmt::format("{} refused {}", tenant, to_string(status)));
  }
  void sandbox_taken(sandbox_source from) override {
    note(fmt::format("taken from {}", to_string(from)));
  }
  void sandbox_booted(std::chrono::nanoseconds took) override {
    note(fmt::format("booted {}", ms(took)));
  }
  void tool_call_ended(std::string_view server, std::string_view outcome,
                       std::chrono::nanoseconds took) override {
    note(fmt::format("call {} {} {}", server, outcome, ms(took)));
  }
  void upstream_restarted(std::string_view server) override {
    note(fmt::format("restarted {}", server));
  }
  void leaks_swept(const swept_leaks& what) override {
    note(fmt::format("swept {} {} {} {}", what.containers, what.processes, what.cgroups,
                     what.folders));
  }
  void http_answered(std::uint32_t status) override { note(fmt::format("http {}", status)); }
  void tenant_gone(const std::string& tenant) override { note(fmt::format("{} gone", tenant)); }

private:
  static std::int64_t ms(std::chrono::nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  }

  void note(std::string line) {
    std::lock_guard guard{mutex_};
    lines_.push_back(std::move(line));
  }

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

using lines = std::vector<std::string>;

/// A board whose clock stands still, and what it tells.
struct watched_board {
  std::shared_ptr<activity_log> log = std::make_shared<activity_log>();
  std::chrono::system_clock::time_point time{std::chrono::hours{1}};
  std::shared_ptr<activity_board> board =
      std::make_shared<activity_board>([this] { return time; }, log);
};

} // namespace bulkhead::testing
