#include "main/shared_servers.hpp"

#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "main/private_file.hpp"

namespace bulkhead {

/// The registry of the engine that runs them, as it is when asked. Thread-safe.
class shared_registry {
public:
  /// Null: there is none.
  void set(std::function<client_registry_actor()> source) {
    std::lock_guard guard{mutex_};
    source_ = std::move(source);
  }

  client_registry_actor get() const {
    std::lock_guard guard{mutex_};
    return source_ ? source_() : client_registry_actor{};
  }

private:
  mutable std::mutex mutex_;
  std::function<client_registry_actor()> source_;
};

/// The files whose servers are shared, or were since the process began: a tenant's engine may still
/// know a server of an earlier one, which it must not run itself. Thread-safe.
class shared_files {
public:
  void add(const std::string& path) {
    std::lock_guard guard{mutex_};
    paths_.insert(path);
  }

  bool contains(const std::string& path) const {
    std::lock_guard guard{mutex_};
    return paths_.contains(path);
  }

private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

shared_servers::shared_servers(shared_process& process, account who, settings base,
                               std::string runtime_dir)
    : process_{process}, who_{std::move(who)}, base_{std::move(base)}, runtime_dir_{std::move(
                                                                           runtime_dir)},
      files_{std::make_shared<shared_files>()}, registry_{std::make_shared<shared_registry>()},
      calls_{std::make_shared<std::atomic<std::uint64_t>>(0)} {}

shared_servers::~shared_servers() {
  registry_->set(nullptr);
}

void shared_servers::begin_stop() {
  if (runs_) {
    runs_->begin_stop();
  }
}

void shared_servers::apply(const std::string& file) {
  if (file == file_ && (runs_ || file.empty())) {
    return;
  }
  registry_->set(nullptr);
  if (runs_) {
    runs_->begin_stop();
    ending_.emplace_back([last = std::move(runs_)]() mutable { last.reset(); });
  }
  file_ = file;
  if (file.empty()) {
    return;
  }
  files_->add(file);
  auto started = start();
  if (!started) {
    process_.log()->error("the servers of {} can't be shared: {}", file, started.error().message);
    return;
  }
  runs_ = std::move(*started);
  log_problems(*runs_);
  runs_->watch_configuration();
  registry_->set(runs_->registry());
}

expected<std::unique_ptr<engine>> shared_servers::start() const {
  auto own = base_;
  own.state_dir += "/shared";
  own.ledger = ledger_mode::off;
  if (auto made = make_private_folder(own.state_dir); !made) {
    return tl::unexpected{made.error()};
  }
  engine_options options{who_, std::move(own), runtime_dir_};
  options.only_servers = true;
  options.shared.has = [](const server_entry&) { return true; };
  options.loading.own_only = true;
  options.loading.only_shared = true;
  options.rights.shared = shared_file{file_, std::nullopt, allowed()};
  auto whole = process_.budget()->total();
  options.budget = std::make_shared<memory_budget>(whole / 2, whole / 8, process_.budget());
  return engine::start(process_, std::move(options));
}

/// As with the file with the tenants: nothing that a tenant's code can write to counts.
trust shared_servers::allowed() const {
  auto result = trusted_by(base_, who_);
  result.guest_folders.push_back(base_.state_dir + "/tenants");
  return result;
}

shared_services shared_servers::services() const {
  // A tenant's own servers stand in files of other folders.
  auto has = [files = files_](const server_entry& entry) { return files->contains(entry.source); };
  return {has, [registry = registry_] { return registry->get(); },
          [calls = calls_] { return ++*calls; }};
}

std::optional<shared_file> shared_servers::part_of(const tenant& one) const {
  if (one.shared.empty() || file_.empty()) {
    return std::nullopt;
  }
  return shared_file{file_, one.shared, allowed()};
}

void log_problems(const engine& of) {
  for (const auto& problem : of.catalogue()->problems) {
    of.env()->log->log(problem.kind == problem_kind::error ? spdlog::level::warn
                                                           : spdlog::level::info,
                       "{}", to_text(problem));
  }
}

} // namespace bulkhead
