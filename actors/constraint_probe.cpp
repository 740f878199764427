#include "actors/constraint_probe.hpp"

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "actors/constraint_rows.hpp"
#include "actors/container_brake.hpp"
#include "actors/container_drive.hpp"
#include "actors/limit_checks.hpp"
#include "actors/oci_bundle.hpp"
#include "actors/probe_session.hpp"

namespace bulkhead {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

/// Small, so that using twice as much is quick and can't hurt the host; the way limits are set is
/// that of every run.
constexpr std::uint64_t probe_memory = 96 * mebibyte;
constexpr std::uint32_t probe_pids = 64;
constexpr std::int32_t killed_exit_code = 137;

/// The uid of a process as this host sees it, from "Uid:" in /proc/PID/status.
std::optional<std::uint32_t> uid_of(const host_view& host, const std::string& pid) {
  std::istringstream lines{read_small_file(host.proc + "/" + pid + "/status").value_or("")};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields{line};
    std::string name;
    std::uint32_t uid = 0;
    if (fields >> name >> uid && name == "Uid:") {
      return uid;
    }
  }
  return std::nullopt;
}

class constraint_search {
public:
  constraint_search(driver_context& context, facts_ptr facts)
      : context_{context}, facts_{std::move(facts)}, session_{context, *facts_} {}

  task<expected<runtime_report>> run() {
    auto result = co_await gather();
    auto closed = co_await session_.close();
    if (!result) {
      co_return result;
    }
    if (!closed) {
      co_return tl::unexpected{closed.error()};
    }
    co_return result;
  }

private:
  task<expected<runtime_report>> gather() {
    const auto& config = *context_.env->config;
    evidence_.limits = {std::min(config.memory, probe_memory), std::min(config.pids, probe_pids),
                        config.cpus};
    evidence_.account = context_.host.uid;
    auto report = facts_->report;
    auto python = co_await session_.open(evidence_.limits);
    if (!python) {
      co_return tl::unexpected{python.error()};
    }
    report.python = *python;
    auto answer = co_await session_.ask("facts");
    if (!answer) {
      co_return tl::unexpected{answer.error()};
    }
    auto inside = json::parse(*answer, nullptr, false);
    co_await find_uid();
    auto brake = brake_on(context_.host);
    auto held = brake->hold(brake->find(session_.record().handle));
    evidence_.idle = brake->release(held) ? held.how : brake_kind::none;
    auto tested = co_await use_up_pids();
    if (!tested) {
      co_return tl::unexpected{tested.error()};
    }
    co_await use_up_memory();
    report.constraints =
        constraint_rows(config, *facts_, inside, evidence_, limits_remedy(*facts_, context_.host));
    co_return report;
  }

  task<void> find_uid() {
    if (facts_->oci) {
      auto pid = read_small_file(pid_file(session_.record().handle.folder)).value_or("");
      evidence_.uid_on_host = uid_of(context_.host, pid.substr(0, pid.find('\n')));
      co_return;
    }
    std::vector<std::string> argv = {facts_->engine.binary, "inspect", "--format", "{{.State.Pid}}",
                                     session_.record().handle.name};
    auto result = co_await context_.run(std::move(argv), 20s);
    if (result && result->exit_code == 0) {
      evidence_.uid_on_host = uid_of(context_.host, result->out.substr(0, result->out.find('\n')));
    }
  }

  task<expected<void>> use_up_pids() {
    evidence_.threads_asked = evidence_.limits.pids + 64;
    auto answer = co_await session_.ask("pids " + std::to_string(evidence_.threads_asked));
    if (!answer) {
      co_return tl::unexpected{answer.error()};
    }
    auto counted = json::parse(*answer, nullptr, false);
    if (counted.is_object() && counted.value("started", json{}).is_number_unsigned()) {
      evidence_.threads = counted["started"].get<std::uint64_t>();
    }
    co_return expected<void>{};
  }

  task<void> use_up_memory() {
    auto answer = co_await session_.ask("memory " + std::to_string(2 * evidence_.limits.memory));
    evidence_.killed = !answer && session_.ended() && session_.exit_code() == killed_exit_code;
    if (evidence_.killed) {
      evidence_.kill_was_told =
          co_await killed_for_memory(context_, *facts_, session_.record().handle);
    }
  }

  driver_context& context_;
  facts_ptr facts_;
  probe_session session_;
  constraint_evidence evidence_;
};

} // namespace

task<expected<runtime_report>> probe_constraints(driver_context& context, facts_ptr facts) {
  constraint_search search{context, std::move(facts)};
  auto result = co_await search.run();
  co_return result;
}

} // namespace bulkhead
