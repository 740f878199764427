#include "main/tenants.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

namespace bulkhead {

namespace {

/// Nobody but the account may look into a tenant's folder.
expected<void> make_folder_of(const std::string& state_dir) {
  auto parent = state_dir.substr(0, state_dir.rfind('/'));
  for (const auto& path : {parent, state_dir}) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(errc::unavailable,
                  fmt::format("make the folder \"{}\": {}", path, std::strerror(errno)));
    }
  }
  struct stat info {};
  if (::lstat(state_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return fail(errc::unavailable, fmt::format("\"{}\" must be a folder, and no link: it is one "
                                               "tenant's alone",
                                               state_dir));
  }
  if (info.st_uid != ::geteuid()) {
    return fail(errc::unavailable,
                fmt::format("the folder \"{0}\" belongs to another account; as root: chown -R {1} "
                            "\"{0}\"",
                            state_dir, ::geteuid()));
  }
  if (::chmod(state_dir.c_str(), 0700) != 0) {
    return fail(errc::unavailable, fmt::format("keep the folder \"{}\" from others: {}", state_dir,
                                               std::strerror(errno)));
  }
  return {};
}

token_bucket::time_point now() {
  return std::chrono::steady_clock::now();
}

} // namespace

tenants::tenants(shared_process& process, account who, settings base, std::string runtime_dir)
    : process_{process}, who_{std::move(who)}, base_{std::move(base)}, runtime_dir_{std::move(
                                                                           runtime_dir)},
      concurrent_runs_{base_.concurrent_runs}, queue_{limits{}.admission_queue} {
  admission_rules rules;
  rules.runs = [this] {
    std::lock_guard guard{mutex_};
    return concurrent_runs_;
  };
  rules.quota_of = [this](const std::string& name) { return quota_of(name); };
  rules.wall_clock = [] { return std::chrono::system_clock::now(); };
  rules.load = load_;
  admission_ = process_.system().spawn(admission, std::move(rules));
  boots_ = process_.system().spawn(admission, rules_for_boots());
}

tenants::~tenants() {
  for (auto& [name, each] : served_) {
    leaving_.emplace(name, std::move(each.runs));
  }
  for (auto& [name, each] : leaving_) {
    each->begin_stop();
  }
  leaving_.clear();
  ending_.clear();
  caf::scoped_actor self{process_.system()};
  for (const auto& desk : {admission_, boots_}) {
    self->monitor(desk);
    self->send_exit(desk, caf::exit_reason::kill);
    self->receive([](const caf::down_msg&) {}, caf::after(std::chrono::seconds{1}) >> [] {});
  }
}

std::vector<std::string> tenants::apply(const serve_config& config) {
  {
    std::lock_guard guard{mutex_};
    concurrent_runs_ = config.concurrent_runs;
    queue_ = config.queue;
  }
  // Whoever has lost a right has lost it before anything else happens.
  tokens_->set(token_book{config});
  std::vector<std::string> gone;
  {
    std::lock_guard guard{mutex_};
    for (auto each = served_.begin(); each != served_.end();) {
      auto next = std::next(each);
      if (config.find(each->first) == nullptr) {
        gone.push_back(each->first);
        leaving_.emplace(each->first, std::move(each->second.runs));
        served_.erase(each);
      }
      each = next;
    }
    std::erase_if(missing_, [&](const auto& each) { return config.find(each.first) == nullptr; });
  }
  for (const auto& one : config.tenants) {
    start_or_change(one);
  }
  return gone;
}

void tenants::end(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (auto found = leaving_.extract(name)) {
      found.mapped()->begin_stop();
      ending_.emplace_back([last = std::move(found.mapped())]() mutable { last.reset(); });
    }
  }
}

void tenants::start_or_change(const tenant& one) {
  auto own = settings_for(base_, one);
  std::shared_ptr<engine> runs;
  {
    std::lock_guard guard{mutex_};
    auto found = served_.find(one.name);
    if (found != served_.end()) {
      if (found->second.what == one) {
        return;
      }
      runs = found->second.runs;
      found->second.requests.change(one.limits.requests_per_second, one.limits.burst, now());
      found->second.what = one;
    }
  }
  if (!runs) {
    add(one, std::move(own));
    return;
  }
  runs->change_settings(std::move(own), [one](policy& rules) { add_rules(one, rules); });
}

void tenants::add(const tenant& one, settings own) {
  auto folder = own.state_dir;
  auto runs = start_engine(one, std::move(own));
  if (!runs) {
    process_.log()->error("tenant \"{}\" isn't served: {}", one.name, runs.error().message);
    std::lock_guard guard{mutex_};
    missing_[one.name] = std::move(folder);
    return;
  }
  for (const auto& problem : (*runs)->catalogue()->problems) {
    if (problem.kind == problem_kind::error) {
      (*runs)->env()->log->warn("{}", to_text(problem));
    }
  }
  serve(one, std::move(*runs));
}

void tenants::serve(const tenant& one, std::shared_ptr<engine> runs) {
  runs->watch_configuration();
  std::lock_guard guard{mutex_};
  missing_.erase(one.name);
  served_.emplace(one.name,
                  served{one,
                         std::move(runs),
                         {one.limits.requests_per_second, double(one.limits.burst), now()}});
}

expected<std::shared_ptr<engine>> tenants::start_engine(const tenant& one, settings own) {
  if (auto made = make_folder_of(own.state_dir); !made) {
    return tl::unexpected{made.error()};
  }
  engine_options options{who_, std::move(own), runtime_dir_};
  options.tenant = one.name;
  options.loading.own_only = true;
  options.narrow = [one](policy& rules) { add_rules(one, rules); };
  options.admission = admission_;
  options.boots = boots_;
  options.has_page = true;
  auto whole = process_.budget()->total();
  options.budget = std::make_shared<memory_budget>(whole / 2, whole / 8, process_.budget());
  auto started = engine::start(process_, std::move(options));
  if (!started) {
    return tl::unexpected{started.error()};
  }
  return std::shared_ptr<engine>{std::move(*started)};
}

expected<void> tenants::serve_alone(const std::string& name, const std::string& token) {
  serve_config config;
  tenant one;
  one.name = name;
  one.tokens.push_back({"first", token_hash(token), {}});
  one.image = base_.image;
  one.limits.concurrent_runs = base_.concurrent_runs;
  config.tenants.push_back(one);
  engine_options options{who_, base_, runtime_dir_};
  options.admission = admission_;
  options.boots = boots_;
  options.has_page = true;
  auto started = engine::start(process_, std::move(options));
  if (!started) {
    return tl::unexpected{started.error()};
  }
  tokens_->set(token_book{config});
  serve(one, std::move(*started));
  return {};
}

std::optional<session_context> tenants::context_of(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto found = served_.find(name);
  if (found == served_.end()) {
    return std::nullopt;
  }
  auto context = found->second.runs->context_of_sessions();
  context.owner = name;
  if (!*has_page_) {
    context.book = nullptr;
  }
  return context;
}

std::vector<tenants::vital_parts> tenants::parts() const {
  std::lock_guard guard{mutex_};
  std::vector<vital_parts> all;
  for (const auto& [name, each] : served_) {
    const auto& runs = *each.runs;
    all.push_back({name, runs.tree(), runs.services().runtime, runs.env()->config->state_dir});
  }
  return all;
}

page_context_ptr tenants::page_of(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto found = *has_page_ ? served_.find(name) : served_.end();
  return found == served_.end()
             ? nullptr
             : std::make_shared<const page_context>(found->second.runs->context_of_page(name));
}

std::map<std::string, std::string> tenants::missing() const {
  std::lock_guard guard{mutex_};
  return missing_;
}

run_quota tenants::quota_of(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto found = served_.find(name);
  if (found == served_.end()) {
    return {0, 0, {}};
  }
  const auto& limits = found->second.what.limits;
  // One with all the places would keep another's run waiting until the next of its own ends.
  std::size_t for_others = served_.size() > 1 && concurrent_runs_ > 1 ? 1 : 0;
  auto runs = std::min<std::size_t>(limits.concurrent_runs, concurrent_runs_ - for_others);
  run_quota quota{runs, queue_, {}, limits.cpus.value_or(1.0)};
  if (limits.cpu_seconds_per_day) {
    quota.day = static_cast<double>(*limits.cpu_seconds_per_day);
  }
  return quota;
}

std::optional<too_soon> tenants::count_request(const std::string& name) {
  std::lock_guard guard{mutex_};
  auto found = served_.find(name);
  if (found == served_.end()) {
    return std::nullopt; // whoever answers says that it isn't served
  }
  auto wait = found->second.requests.take(now());
  if (!wait) {
    return std::nullopt;
  }
  const auto& limits = found->second.what.limits;
  return too_soon{fmt::format("more than {:g} requests a second on average, or {} at once; wait, "
                              "or have requests_per_second raised",
                              limits.requests_per_second, limits.burst),
                  std::chrono::seconds{static_cast<long>(std::ceil(wait->count()))}};
}

std::shared_ptr<memory_budget> tenants::budget_of(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto found = served_.find(name);
  return found == served_.end() ? nullptr : found->second.runs->env()->budget;
}

std::optional<too_soon> tenants::put_off_call(const std::string& name) const {
  auto waiting = load_->waiting(name);
  if (auto quota = quota_of(name); waiting == 0 || waiting < quota.queue) {
    return std::nullopt;
  }
  return too_soon{fmt::format("{} runs wait already; try again when some have ended", waiting),
                  std::chrono::seconds{2}};
}

} // namespace bulkhead
