#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/io/file_watch.hpp"
#include "actors/trusted_file.hpp"
#include "main/bearer_gate.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/randomness.hpp"
#include "main/serve_file.hpp"
#include "main/server_limits.hpp"
#include "main/server_pages.hpp"
#include "main/service_link.hpp"
#include "main/tenants.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// Runs that go on when the process is asked to end may take that long.
constexpr auto drain_time = 10s;
constexpr auto front_end_stop_budget = 14s;
/// For clients to take what was answered last.
constexpr auto last_answers = 500ms;

/// Messages as large as they may be take a worker a while: as many tenants may send such ones, less
/// one, and the rest needn't wait for them.
constexpr std::size_t least_workers = 4;

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

settings base_of(settings config) {
  if (!environment_variable("MCP_BRIDGE_POOL")) {
    config.pool = tenant_pool;
  }
  return config;
}

std::string shown_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

/// What tells one certificate from another; empty without TLS.
std::string certificate_text(const std::optional<tls_files>& files) {
  constexpr std::size_t most = mebibyte;
  return files ? read_any_file(files->certificate, most).value_or("") : "";
}

class http_server {
public:
  http_server(const command_line& line, const settings& config, const account& who,
              std::string runtime_dir, service_link link)
      : line_{line}, base_{base_of(config)}, who_{who},
        runtime_dir_{std::move(runtime_dir)}, process_{config, stop_, least_workers},
        tenants_{process_, who, base_, runtime_dir_}, gate_{process_, tenants_.tokens()},
        link_{std::move(link)}, path_{serve_file_path(line.serve_config, config)} {}

  int run(int out);

private:
  bool is_configured() const {
    std::error_code unreadable;
    return !line_.serve_config.empty() || environment_variable("MCP_BRIDGE_SERVE_CONFIG") ||
           std::filesystem::exists(path_, unreadable) || unreadable;
  }
  tl::expected<serve_config, std::vector<error>> read() const {
    return load_serve_file(path_, base_, who_);
  }
  int prepare();
  int serve_one();
  web_page_context page_context_of_all();
  expected<void> listen();
  expected<void> listen_for_operators();
  void announce(int out);
  void watch();
  std::vector<std::string> files_that_count() const;
  void reload();
  void renew_certificate();
  void wait();
  void drain();
  void stop();
  std::string summary() const;

  const command_line& line_;
  settings base_;
  account who_;
  std::string runtime_dir_;
  std::atomic<bool> changed_ = false; ///< a file that counts
  std::atomic<bool> stopping_ = false;
  stop_signal stop_; ///< blocks signals for all threads: before any is started
  shared_process process_;
  tenants tenants_;
  bearer_gate gate_;
  service_link link_;
  std::string path_;        ///< of the configuration
  bool broken_ = false;     ///< it can't be used as it is now
  std::string certificate_; ///< as clients see it
  serve_config config_;
  std::string token_; ///< of the only tenant, where nothing is configured
  http_front_end_actor front_end_;
  health_actor health_;
  web_page_actor page_;
  std::shared_ptr<io::http_listener> listener_;
  std::shared_ptr<io::http_listener> operators_; ///< null unless configured
  std::shared_ptr<io::file_watch> watch_;
};

/// Who is served. 0, or the status to end with.
int http_server::prepare() {
  process_.count_activity();
  if (!is_configured()) {
    if (auto status = serve_one(); status != 0) {
      return status;
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
    gate_.apply(config_.oauth);
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
  if (token_.empty() && config_.tenants.empty()) {
    process_.log()->warn("{} names no tenants, so that nobody is served; make one with: bulkhead "
                         "token new NAME --add-tenant",
                         path_);
  }
  return 0;
}

int http_server::serve_one() {
  token_ = make_token(random_bytes(token_random_bytes));
  auto served = tenants_.serve_alone(only_tenant, token_);
  if (!served) {
    complain(served.error().message);
    return 1;
  }
  return 0;
}

web_page_context http_server::page_context_of_all() {
  web_page_context made;
  made.env = make_environment(process_, {who_, base_, runtime_dir_}, {});
  made.tenant = [this](const std::string& name) { return tenants_.page_of(name); };
  made.count_request = [this](const std::string& name) { return tenants_.count_request(name); };
  return made;
}

expected<void> http_server::listen() {
  http_front_end_context context;
  context.env = make_environment(process_, {who_, base_, runtime_dir_}, {});
  context.session_of = [this](const std::string& name) { return tenants_.context_of(name); };
  context.count_request = [this](const std::string& name) { return tenants_.count_request(name); };
  context.put_off_call = [this](const std::string& name) { return tenants_.put_off_call(name); };
  front_end_ = process_.system().spawn(http_front_end, std::move(context));
  auto more = [this] {
    auto checks = gate_.checks();
    if (token_.empty()) {
      auto now = read();
      checks.push_back(check_configuration(path_, now ? std::vector<error>{} : now.error()));
    }
    return checks;
  };
  health_ = spawn_health(
      process_, tenants_, [this] { return stopping_.load(); }, more);
  tenants_.have_page(has_ui(config_));
  page_ = process_.system().spawn(web_page, page_context_of_all());
  io::http_listener_options options;
  options.address = config_.listen.host;
  options.port = config_.listen.port;
  options.adopted = link_.socket();
  options.bounds.connections = config_.connections.most;
  options.bounds.connections_per_address = config_.connections.per_address;
  options.bounds.connections_per_principal = std::max<std::size_t>(1, config_.connections.most / 4);
  options.bounds.counts_loopback = config_.connections.count_loopback;
  options.tls = config_.tls;
  options.rules.hosts = accepted_hosts(config_);
  options.rules.authenticate = gate_.check();
  options.rules.pages = client_pages();
  options.budget = process_.budget();
  options.budget_of = [this](const std::string& name) { return tenants_.budget_of(name); };
  options.answered = [board = process_.board()](std::uint32_t status) {
    board->http_answered(status);
  };
  auto opened = io::http_listener::open(
      process_.io(), options,
      client_requests({front_end_, health_, page_, tenants_.page_switch(), gate_.metadata()}));
  if (!opened) {
    return fail_to_listen(opened.error(), "\"listen\"", path_ + " or --listen");
  }
  listener_ = std::move(*opened);
  certificate_ = certificate_text(config_.tls);
  return config_.operators ? listen_for_operators() : expected<void>{};
}

expected<void> http_server::listen_for_operators() {
  io::http_listener_options options;
  options.address = config_.operators->host;
  options.port = config_.operators->port;
  options.rules.path = {};
  options.rules.pages = operator_pages();
  options.rules.hosts = accepted_hosts(config_);
  options.rules.hosts.push_back(shown_host(config_.operators->host));
  options.budget = process_.budget();
  auto opened =
      io::http_listener::open(process_.io(), options, operator_requests(process_, health_));
  if (!opened) {
    return fail_to_listen(opened.error(), "\"listen\" of [operator]", path_);
  }
  operators_ = std::move(*opened);
  process_.log()->info("figures for operators at http://{}:{}/metrics",
                       shown_host(config_.operators->host), operators_->port());
  return {};
}

void http_server::announce(int out) {
  auto url = fmt::format("{}://{}:{}/mcp", config_.tls ? "https" : "http",
                         shown_host(config_.listen.host), listener_->port());
  write_all(out, url + "\n" + (token_.empty() ? "" : token_ + "\n"));
  if (!token_.empty()) {
    write_all(STDERR_FILENO, fmt::format(first_words, url));
  }
  process_.log()->info("{} at {}", summary(), url);
}

std::string http_server::summary() const {
  return fmt::format("serving {} tenants", token_.empty() ? config_.tenants.size() : 1);
}

void http_server::watch() {
  if (!token_.empty()) {
    return;
  }
  watch_ = io::file_watch::open(
      process_.io(), [](std::string_view) { return false; },
      [this] {
        changed_ = true;
        stop_.notify();
      });
  watch_->set(files_that_count());
}

std::vector<std::string> http_server::files_that_count() const {
  std::vector<std::string> paths = {path_};
  if (config_.tls) {
    paths.push_back(config_.tls->certificate);
    paths.push_back(config_.tls->key);
  }
  return paths;
}

/// A file that can't be used changes nothing.
void http_server::reload() {
  auto next = read();
  if (next && !line_.listen.empty()) {
    next->listen = config_.listen;
  }
  if (std::exchange(broken_, !next) && next) {
    process_.log()->info("{} can be used again", path_);
  }
  if (!next) {
    for (const auto& problem : next.error()) {
      process_.log()->error("the configuration stays as it was: {}", problem.message);
    }
  } else if (auto change = compare(config_, *next); change.none()) {
    tenants_.apply(config_); // those that couldn't be served are tried again
  } else {
    for (const auto& key : change.restart) {
      process_.log()->warn("{}: \"{}\" changed, which counts after a restart", path_, key);
    }
    process_.log()->info("{}: {} tenants came, {} went, {} changed", path_, change.added.size(),
                         change.removed.size(), change.changed.size());
    next->listen = config_.listen;
    if (next->tls.has_value() != config_.tls.has_value()) {
      next->tls = config_.tls;
    }
    config_ = std::move(*next);
    tenants_.have_page(has_ui(config_));
    gate_.apply(config_.oauth);
    auto gone = tenants_.apply(config_);
    for (const auto& name : gone) {
      caf::anon_send(front_end_, stop_atom::value, name);
    }
    tenants_.end(gone);
    watch_->set(files_that_count());
    listener_->tokens_changed();
  }
  renew_certificate();
}

void http_server::renew_certificate() {
  if (!config_.tls) {
    return;
  }
  if (auto taken = listener_->set_tls(*config_.tls); !taken) {
    process_.log()->error("the certificate stays as it was: {}", taken.error().message);
  } else if (auto now = certificate_text(config_.tls); std::exchange(certificate_, now) != now) {
    process_.log()->info("new connections get the certificate that is in {} now",
                         config_.tls->certificate);
  }
}

void http_server::wait() {
  for (;;) {
    auto signal = stop_.wait();
    bool reloads = signal == SIGHUP && token_.empty();
    if (process_.failed() || (signal.value_or(0) != 0 && !reloads)) {
      return;
    }
    // The word that files have changed may come with a signal, and be read after it.
    if (changed_.exchange(false) || reloads) {
      link_.reloading(process_);
      reload();
      link_.ready(process_, summary());
    }
  }
}

/// What runs may come to its end; another signal cuts that short.
void http_server::drain() {
  stopping_ = true;
  link_.stopping(process_);
  listener_->close(drain_time + front_end_stop_budget, {});
  auto until = std::chrono::steady_clock::now() + drain_time;
  while (tenants_.runs() > 0 && std::chrono::steady_clock::now() < until && !process_.failed() &&
         !stop_.wait(50ms)) {
  }
}

/// Ends what asks the tenants, which it does until it has ended.
void http_server::stop() {
  if (watch_) {
    watch_->close();
  }
  if (!front_end_) {
    return;
  }
  caf::scoped_actor self{process_.system()};
  self->request(front_end_, front_end_stop_budget, stop_atom::value)
      .receive([](caf::ok_atom) {}, [](const caf::error&) {});
  self->send(page_, stop_atom::value);
  for (const auto& each :
       {caf::actor_cast<caf::actor>(front_end_), caf::actor_cast<caf::actor>(health_),
        caf::actor_cast<caf::actor>(page_)}) {
    self->monitor(each);
    self->send_exit(each, caf::exit_reason::kill);
    self->receive([](const caf::down_msg&) {}, caf::after(2s) >> [] {});
  }
  for (const auto& each : {listener_, operators_}) {
    if (each) {
      io::close_and_wait(*each, last_answers);
    }
  }
}

int http_server::run(int out) {
  auto status = prepare();
  if (status == 0) {
    if (auto listening = listen(); !listening) {
      complain(listening.error().message);
      status = 1;
    }
  }
  if (status == 0) {
    announce(out);
    watch();
    link_.ready(process_, summary());
    wait();
    process_.log()->info("stopping");
    drain();
  }
  stop();
  return process_.leave_with(process_.failed() ? 1 : status);
}

} // namespace

int serve_http(const command_line& line, const settings& config, const account& who, int out) {
  raise_descriptors();
  // While there is one thread.
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
