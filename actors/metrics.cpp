#include "actors/metrics.hpp"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "actors/process_usage.hpp"

namespace bulkhead {

namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::ClientMetric;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;
using buckets = Histogram::BucketBoundaries;

/// A label's values beyond these share the series "other".
constexpr std::size_t most_servers = 200;
constexpr std::size_t most_tenants = 1'000;
const std::string others = "other";

// Seconds. A run that needn't wait is admitted within a millisecond; clients give up after 60 s.
const buckets queue_buckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
// A container's boot takes a tenth of a second to a second, on a busy machine several.
const buckets boot_buckets = {0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 90};
const buckets run_buckets = {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
const buckets call_buckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                              0.5,   1,      2.5,   5,    10,    30,   60};

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>{time}.count();
}

/// What is read when it is asked for.
class readings {
public:
  explicit readings(std::vector<MetricFamily>& to) : to_{to} {}

  void family(const char* name, const char* help, MetricType type = MetricType::Gauge) {
    to_.push_back({name, help, type, {}});
  }

  void value(double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    metric.counter.value = value;
    to_.back().metric.push_back(std::move(metric));
  }

private:
  std::vector<MetricFamily>& to_;
};

void read_tenants(readings& to, const std::vector<tenant_now>& tenants) {
  auto each = [&](const char* name, const char* help, std::size_t tenant_now::*what) {
    to.family(name, help);
    for (const auto& tenant : tenants) {
      to.value(static_cast<double>(tenant.*what), {{"tenant", tenant.name}});
    }
  };
  each("bulkhead_runs", "Runs that go on, queued ones too.", &tenant_now::runs);
  each("bulkhead_sessions", "Interpreters kept between runs.", &tenant_now::sessions);
  each("bulkhead_pool_depth", "Sandboxes that wait booted for a run.", &tenant_now::waiting);
}

void read_process(readings& to, const memory_budget* budget) {
  if (budget != nullptr) {
    to.family("bulkhead_memory_budget_used_bytes",
              "Bytes held for others: frames, queues, outputs, answers.");
    to.value(static_cast<double>(budget->used()));
  }
  to.family("bulkhead_build_info", "The version that runs; always 1.");
  to.value(1, {{"version", BULKHEAD_VERSION}});
  auto usage = read_process_usage();
  if (!usage) {
    return;
  }
  to.family("process_resident_memory_bytes", "Resident memory.");
  to.value(static_cast<double>(usage->resident_bytes));
  to.family("process_virtual_memory_bytes", "Virtual memory.");
  to.value(static_cast<double>(usage->virtual_bytes));
  to.family("process_cpu_seconds_total", "Processor time, user and system.", MetricType::Counter);
  to.value(usage->cpu_seconds);
  to.family("process_open_fds", "Open file descriptors.");
  to.value(static_cast<double>(usage->descriptors));
  to.family("process_threads", "Threads.");
  to.value(static_cast<double>(usage->threads));
}

} // namespace

struct metrics::series {
  prometheus::Registry registry;

  Family<Counter>& runs = BuildCounter()
                              .Name("bulkhead_runs_total")
                              .Help("Runs that ended, or couldn't begin, by how.")
                              .Register(registry);
  Family<Counter>& sandboxes = BuildCounter()
                                   .Name("bulkhead_sandboxes_taken_total")
                                   .Help("Sandboxes taken by runs: booted before, or for the run.")
                                   .Register(registry);
  Family<Counter>& calls = BuildCounter()
                               .Name("bulkhead_tool_calls_total")
                               .Help("Tool calls that reached their server, by how they ended.")
                               .Register(registry);
  Family<Counter>& restarts = BuildCounter()
                                  .Name("bulkhead_upstream_restarts_total")
                                  .Help("MCP servers started again after they had failed.")
                                  .Register(registry);
  Family<Counter>& leaks = BuildCounter()
                               .Name("bulkhead_leaks_swept_total")
                               .Help("What dead instances had left and a sweep removed.")
                               .Register(registry);
  Family<Counter>& requests = BuildCounter()
                                  .Name("bulkhead_http_requests_total")
                                  .Help("HTTP requests by the status of their answer.")
                                  .Register(registry);
  Family<Histogram>& call_seconds =
      BuildHistogram()
          .Name("bulkhead_tool_call_seconds")
          .Help("From sending a tool call to its server until it ended.")
          .Register(registry);
  Histogram& queue_seconds = histogram(
      "bulkhead_queue_seconds", "From asking for a run until it had its place.", queue_buckets);
  Histogram& boot_seconds =
      histogram("bulkhead_boot_seconds", "How long sandboxes took to boot.", boot_buckets);
  Histogram& run_seconds = histogram(
      "bulkhead_run_seconds", "How long runs took, from their place to their end.", run_buckets);

  Histogram& histogram(const char* name, const char* help, const buckets& bounds) {
    return BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
  }

  /// The label's value that stands for `name`. Call under the lock.
  template <class Known>
  static const std::string& bounded(const Known& known, const std::string& name, std::size_t most) {
    return known.size() < most || known.contains(name) ? name : others;
  }

  void count_run(const std::string& tenant, run_status status) {
    std::lock_guard guard{mutex};
    const auto& label = bounded(tenants, tenant, most_tenants);
    auto& counter = tenants[label][status];
    if (counter == nullptr) {
      counter = &runs.Add({{"tenant", label}, {"status", std::string{to_string(status)}}});
    }
    counter->Increment();
  }

  struct of_server {
    Histogram* seconds = nullptr;
    Counter* restarts = nullptr;
    std::map<std::string, Counter*, std::less<>> calls; ///< by outcome
  };

  /// Call under the lock.
  std::pair<const std::string, of_server>& server(std::string_view name) {
    auto found = servers.find(name);
    if (found == servers.end()) {
      std::string fresh{name};
      found = servers.try_emplace(bounded(servers, fresh, most_servers)).first;
    }
    return *found;
  }

  std::mutex mutex;
  std::map<std::string, std::map<run_status, Counter*>> tenants;
  std::map<std::string, of_server, std::less<>> servers;
  std::map<std::uint32_t, Counter*> statuses;
};

metrics::metrics() : series_{std::make_unique<series>()} {
  // So that all kinds are there from the start, and rates of them can be asked for.
  for (auto source : {sandbox_source::shelf, sandbox_source::boot}) {
    series_->sandboxes.Add({{"from", std::string{to_string(source)}}});
  }
  leaks_swept({});
}

metrics::~metrics() = default;

void metrics::run_admitted(const std::string&, std::chrono::nanoseconds waited) {
  series_->queue_seconds.Observe(seconds_of(waited));
}

void metrics::run_ended(const std::string& tenant, run_status status,
                        std::chrono::nanoseconds took) {
  series_->run_seconds.Observe(seconds_of(took));
  series_->count_run(tenant, status);
}

void metrics::run_refused(const std::string& tenant, run_status status) {
  series_->count_run(tenant, status);
}

void metrics::sandbox_taken(sandbox_source from) {
  series_->sandboxes.Add({{"from", std::string{to_string(from)}}}).Increment();
}

void metrics::sandbox_booted(std::chrono::nanoseconds took) {
  series_->boot_seconds.Observe(seconds_of(took));
}

void metrics::tool_call_ended(std::string_view server, std::string_view outcome,
                              std::chrono::nanoseconds took) {
  std::lock_guard guard{series_->mutex};
  auto& [label, of] = series_->server(server);
  if (of.seconds == nullptr) {
    of.seconds = &series_->call_seconds.Add({{"server", label}}, call_buckets);
  }
  of.seconds->Observe(seconds_of(took));
  auto counter = of.calls.find(outcome);
  if (counter == of.calls.end()) {
    Labels labels{{"server", label}, {"outcome", std::string{outcome}}};
    counter = of.calls.emplace(outcome, &series_->calls.Add(labels)).first;
  }
  counter->second->Increment();
}

void metrics::upstream_restarted(std::string_view server) {
  std::lock_guard guard{series_->mutex};
  auto& [label, of] = series_->server(server);
  if (of.restarts == nullptr) {
    of.restarts = &series_->restarts.Add({{"server", label}});
  }
  of.restarts->Increment();
}

void metrics::leaks_swept(const swept_leaks& what) {
  const std::array<std::pair<const char*, std::uint32_t>, 4> kinds = {
      {{"container", what.containers},
       {"process", what.processes},
       {"cgroup", what.cgroups},
       {"folder", what.folders}}};
  for (const auto& [kind, count] : kinds) {
    series_->leaks.Add({{"kind", kind}}).Increment(count);
  }
}

void metrics::http_answered(std::uint32_t status) {
  std::lock_guard guard{series_->mutex};
  auto& counter = series_->statuses[status];
  if (counter == nullptr) {
    counter = &series_->requests.Add({{"status", std::to_string(status)}});
  }
  counter->Increment();
}

void metrics::tenant_gone(const std::string& tenant) {
  std::lock_guard guard{series_->mutex};
  auto gone = series_->tenants.find(tenant);
  if (gone == series_->tenants.end() || tenant == others) {
    return;
  }
  for (auto& [status, counter] : gone->second) {
    series_->runs.Remove(counter);
  }
  series_->tenants.erase(gone);
}

std::string metrics::render(const activity_board& board, const memory_budget* budget) const {
  auto all = series_->registry.Collect();
  readings now{all};
  read_tenants(now, board.tenants());
  read_process(now, budget);
  return prometheus::TextSerializer{}.Serialize(all);
}

} // namespace bulkhead
