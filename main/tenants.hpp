#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/admission.hpp"
#include "actors/http_front_end.hpp"
#include "main/engine.hpp"
#include "main/shared_process.hpp"
#include "protocol/tenant_config.hpp"
#include "protocol/tenant_token.hpp"
#include "protocol/token_bucket.hpp"

namespace bulkhead {

/// The tenants that are served, each with an engine of its own. `apply` and the destructor are for
/// one thread that may wait, which no actor's is; the rest is thread-safe.
class tenants {
public:
  /// `base` has what holds where a tenant's own settings are silent.
  tenants(shared_process& process, account who, settings base, std::string runtime_dir);
  /// Stops all engines, at the same time.
  ~tenants();
  tenants(const tenants&) = delete;
  tenants& operator=(const tenants&) = delete;

  /// Serves these tenants from now on: new ones get an engine, others' limits, rights and tokens
  /// become those of `config`, and those that aren't in it are let in no more. Answers the latter:
  /// `end` ends their engines, once whoever serves them has let go, and doesn't wait for that. An
  /// engine that can't be started is told to the log, and tried again with the next `apply`.
  std::vector<std::string> apply(const serve_config& config);
  void end(const std::vector<std::string>& names);

  /// Serves one tenant, with the folder and the settings of whoever runs this: for a first try.
  /// Errors: unavailable.
  expected<void> serve_alone(const std::string& name, const std::string& token);

  /// Which tenant has a token, at any time.
  std::shared_ptr<const current_tokens> tokens() const { return tokens_; }
  /// What a tenant's sessions talk to.
  std::optional<session_context> context_of(const std::string& name) const;
  /// Is there the web page? Runs of sessions that are opened before aren't on it.
  void have_page(bool yes) { *has_page_ = yes; }
  /// Tells it; outlives the tenants.
  std::function<bool()> page_switch() const {
    return [is_on = has_page_] { return is_on->load(); };
  }
  /// What the page shows to a tenant; null: nothing.
  page_context_ptr page_of(const std::string& name) const;
  /// Counts a request of a tenant, which may come too soon.
  std::optional<too_soon> count_request(const std::string& name);
  /// A call that would be refused because too many wait already.
  std::optional<too_soon> put_off_call(const std::string& name) const;
  /// What a tenant's requests and answers are taken from; null if it isn't served.
  std::shared_ptr<memory_budget> budget_of(const std::string& name) const;
  /// The runs that go on or wait, of all tenants.
  std::size_t runs() const { return load_->total(); }
  /// What tells how a tenant's engine is.
  struct vital_parts {
    std::string name;
    supervisor_actor tree;
    container_runtime_actor runtime;
    std::string state_dir;
  };
  std::vector<vital_parts> parts() const;
  /// The folders of tenants that can't be served.
  std::map<std::string, std::string> missing() const;

private:
  /// What may change of a tenant while it is served.
  struct served {
    tenant what;
    std::shared_ptr<engine> runs;
    token_bucket requests;
  };

  void start_or_change(const tenant& one);
  void add(const tenant& one, settings own);
  void serve(const tenant& one, std::shared_ptr<engine> runs);
  expected<std::shared_ptr<engine>> start_engine(const tenant& one, settings own);
  run_quota quota_of(const std::string& name) const;

  shared_process& process_;
  account who_;
  settings base_;
  std::string runtime_dir_;
  std::shared_ptr<admission_load> load_ = std::make_shared<admission_load>();
  admission_actor admission_;
  admission_actor boots_; ///< gives the turns to boot
  std::shared_ptr<std::atomic<bool>> has_page_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<current_tokens> tokens_ = std::make_shared<current_tokens>();
  mutable std::mutex mutex_; ///< for what follows
  std::map<std::string, served> served_;
  std::map<std::string, std::string> missing_; ///< tenants that can't be served: their folders
  std::map<std::string, std::shared_ptr<engine>> leaving_;
  std::vector<std::jthread> ending_; ///< each ends an engine
  std::size_t concurrent_runs_;
  std::size_t queue_;
};

} // namespace bulkhead
