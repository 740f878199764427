#include <atomic>
#include <csignal>
#include <filesystem>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/http_front_end.hpp"
#include "actors/io/file_watch.hpp"
#include "actors/io/http_listener.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/randomness.hpp"
#include "main/serve_file.hpp"
#include "main/service_link.hpp"
#include "main/tenants.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// Runs that go on when the process is asked to end may take that long.
constexpr auto drain_time = 10s;
constexpr auto front_end_stop_budget = 14s;

constexpr const char* only_tenant = "local";

/// What waits booted of each tenant, unless the settings say otherwise: there may be many of them.
constexpr pool_sizes tenant_pool{1, 2, false};

/// How a person begins.
constexpr const char* first_words =
    "Bulkhead serves MCP at {0} for one tenant with the token above; it holds until this ends.\n"
    "Try it: claude mcp add --transport http bulkhead {0} --header \"Authorization: Bearer "
    "TOKEN\"\n"
    "For several tenants, with tokens that last: bulkhead token new NAME --add-tenant, then start "
    "it again.\n";

class http_server {
public:
  http_server(const command_line& line, const settings& config, const account& who,
              std::string runtime_dir, service_link link)
      : line_{line}, base_{base_of(config)}, who_{who}, runtime_dir_{std::move(runtime_dir)},
        process_{config, stop_}, tenants_{process_, who, base_, runtime_dir_},
        link_{std::move(link)}, path_{serve_file_path(line.serve_config, config)} {}

  int run(int out);

private:
  static settings base_of(settings config) {
    if (!environment_variable("MCP_BRIDGE_POOL")) {
      config.pool = tenant_pool;
    }
    return config;
  }

  bool is_configured() const {
    return !line_.serve_config.empty() || environment_variable("MCP_BRIDGE_SERVE_CONFIG") ||
           std::filesystem::exists(path_);
  }
  tl::expected<serve_config, std::vector<error>> read() const {
    return load_serve_file(path_, base_, who_);
  }
  int prepare();
  int listen(int out);
  std::string summary() const;
  void watch();
  void watch_files();
  void reload();
  void renew_certificate(const std::optional<tls_files>& next);
  void wait();
  void drain();
  http_front_end_context front_end_context();

  const command_line& line_;
  settings base_;
  account who_;
  std::string runtime_dir_;
  std::atomic<bool> changed_ = false; ///< the configuration's file
  stop_signal stop_;                  ///< blocks signals for all threads: before any is started
  shared_process process_;
  tenants tenants_;
  service_link link_;
  std::string path_; ///< of the configuration
  serve_config config_;
  std::string token_; ///< of the only tenant, where nothing is configured
  http_front_end_actor front_end_;
  std::shared_ptr<io::http_listener> listener_;
  std::shared_ptr<io::file_watch> watch_;
};

/// Who is served. 0, or the status to end with.
int http_server::prepare() {
  if (!is_configured()) {
    token_ = make_token(random_bytes(token_random_bytes));
    auto served = tenants_.serve_alone(only_tenant, token_);
    if (!served) {
      complain(served.error().message);
      return 1;
    }
  } else {
    auto config = read();
    if (!config) {
      for (const auto& problem : config.error()) {
        complain(problem.message);
      }
      return 2;
    }
    config_ = std::move(*config);
    tenants_.apply(config_);
  }
  if (!line_.listen.empty()) {
    auto address = parse_listen(line_.listen);
    if (!address) {
      complain(fmt::format("--listen: {}", address.error().message));
      return 2;
    }
    config_.listen = *address;
  }
  for (const auto& remark : config_.remarks) {
    process_.log()->warn("{}", remark);
  }
  return 0;
}

http_front_end_context http_server::front_end_context() {
  http_front_end_context made;
  made.env = make_environment(process_, {who_, base_, runtime_dir_}, {});
  made.session_of = [this](const std::string& name) { return tenants_.context_of(name); };
  made.count_request = [this](const std::string& name) { return tenants_.count_request(name); };
  made.put_off_call = [this](const std::string& name) { return tenants_.put_off_call(name); };
  return made;
}

int http_server::listen(int out) {
  front_end_ = process_.system().spawn(http_front_end, front_end_context());
  io::http_listener_options options;
  options.address = config_.listen.host;
  options.port = config_.listen.port;
  options.rules.hosts = accepted_hosts(config_);
  options.rules.holder = tenants_.holders();
  options.budget = process_.budget();
  options.adopted = link_.socket();
  options.tls = config_.tls;
  auto opened = io::http_listener::open(process_.io(), options, http_requests_to(front_end_));
  if (!opened) {
    complain(opened.error().message);
    return 1;
  }
  listener_ = std::move(*opened);
  auto host = config_.listen.host.find(':') == std::string::npos ? config_.listen.host
                                                                 : "[" + config_.listen.host + "]";
  auto url = fmt::format("{}://{}:{}/mcp", config_.tls ? "https" : "http", host, listener_->port());
  write_all(out, url + "\n" + (token_.empty() ? "" : token_ + "\n"));
  if (!token_.empty()) {
    write_all(STDERR_FILENO, fmt::format(first_words, url));
  }
  process_.log()->info("{} at {}", summary(), url);
  return 0;
}

std::string http_server::summary() const {
  return fmt::format("serving {} tenants", token_.empty() ? config_.tenants.size() : 1);
}

void http_server::watch() {
  if (!token_.empty()) {
    return;
  }
  watch_ = io::file_watch::open(
      process_.io(), [](std::string_view) { return true; },
      [this] {
        changed_ = true;
        stop_.notify();
      });
  watch_files();
}

/// The configuration's, and those that it names.
void http_server::watch_files() {
  std::vector<std::string> files{path_};
  if (config_.tls) {
    files.insert(files.end(), {config_.tls->certificate, config_.tls->key});
  }
  watch_->set(std::move(files));
}

/// A certificate that can't be used leaves the one that is in use.
void http_server::renew_certificate(const std::optional<tls_files>& next) {
  if (!config_.tls || !next) {
    return;
  }
  if (auto set = listener_->set_tls(*next); !set) {
    process_.log()->error("the certificate stays as it was: {}", set.error().message);
  }
}

/// A file that can't be used changes nothing.
void http_server::reload() {
  auto next = read();
  if (!next) {
    for (const auto& problem : next.error()) {
      process_.log()->error("the configuration stays as it was: {}", problem.message);
    }
    return;
  }
  renew_certificate(next->tls);
  auto change = compare(config_, *next);
  if (change.none()) {
    return;
  }
  for (const auto& key : change.restart) {
    process_.log()->warn("{}: \"{}\" changed, which counts after a restart", path_, key);
  }
  process_.log()->info("{}: {} tenants came, {} went, {} changed", path_, change.added.size(),
                       change.removed.size(), change.changed.size());
  auto listening = config_.listen;
  auto tls = config_.tls;
  config_ = std::move(*next);
  config_.listen = listening;
  if (config_.tls.has_value() != tls.has_value()) {
    config_.tls = std::move(tls);
  }
  watch_files();
  auto gone = tenants_.apply(config_);
  for (const auto& name : gone) {
    caf::anon_send(front_end_, stop_atom::value, name);
  }
  tenants_.end(gone);
}

void http_server::wait() {
  for (;;) {
    auto signal = stop_.wait();
    bool reloads = changed_.exchange(false) || (signal == SIGHUP && token_.empty());
    if (!reloads || process_.failed()) {
      return;
    }
    link_.reloading(process_);
    reload();
    link_.ready(process_, summary());
  }
}

/// What runs may come to its end; another signal cuts that short.
void http_server::drain() {
  listener_->close(drain_time + front_end_stop_budget, {});
  auto until = std::chrono::steady_clock::now() + drain_time;
  while (tenants_.runs() > 0 && std::chrono::steady_clock::now() < until && !process_.failed() &&
         !stop_.wait(50ms)) {
  }
}

int http_server::run(int out) {
  auto status = prepare();
  if (status == 0) {
    status = listen(out);
  }
  if (status == 0) {
    watch();
    link_.ready(process_, summary());
    wait();
    process_.log()->info("stopping");
    link_.stopping(process_);
    drain();
  }
  if (watch_) {
    watch_->close();
  }
  if (front_end_) {
    caf::scoped_actor self{process_.system()};
    self->request(front_end_, front_end_stop_budget, stop_atom::value)
        .receive([](caf::ok_atom) {}, [](const caf::error&) {});
    // It asks the tenants until it has ended.
    self->monitor(front_end_);
    self->send_exit(front_end_, caf::exit_reason::kill);
    self->receive([](const caf::down_msg&) {}, caf::after(1s) >> [] {});
  }
  return process_.leave_with(process_.failed() ? 1 : status);
}

} // namespace

int serve_http(const command_line& line, const settings& config, const account& who, int out) {
  auto link = service_link::take();
  if (!link) {
    complain(link.error().message);
    return 2;
  }
  auto runtime_dir = make_runtime_dir(who);
  if (!runtime_dir) {
    complain(runtime_dir.error().message);
    return 2;
  }
  return http_server{line, config, who, *runtime_dir, std::move(*link)}.run(out);
}

} // namespace bulkhead
