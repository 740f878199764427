#include <atomic>
#include <csignal>
#include <filesystem>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/http_front_end.hpp"
#include "actors/io/file_watch.hpp"
#include "actors/io/http_listener.hpp"
#include "actors/web_page.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/randomness.hpp"
#include "main/serve_file.hpp"
#include "main/tenants.hpp"
#include "protocol/page_answer.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// Runs that go on when the process is asked to end may take that long.
constexpr auto drain_time = 10s;
constexpr auto front_end_stop_budget = 14s;
constexpr auto page_stop_budget = 2s;

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
              std::string runtime_dir)
      : line_{line}, base_{base_of(config)}, who_{who}, runtime_dir_{std::move(runtime_dir)},
        process_{config, stop_}, tenants_{process_, who, base_, runtime_dir_},
        path_{serve_file_path(line.serve_config, config)} {}

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
  void watch();
  void reload();
  void wait();
  void drain();
  http_front_end_context front_end_context();
  web_page_context page_context_of_all();
  io::http_request_handler handler() const;
  void stop_page();

  const command_line& line_;
  settings base_;
  account who_;
  std::string runtime_dir_;
  std::atomic<bool> changed_ = false; ///< the configuration's file
  stop_signal stop_;                  ///< blocks signals for all threads: before any is started
  shared_process process_;
  tenants tenants_;
  std::string path_; ///< of the configuration
  serve_config config_;
  std::string token_; ///< of the only tenant, where nothing is configured
  http_front_end_actor front_end_;
  web_page_actor page_;
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

web_page_context http_server::page_context_of_all() {
  web_page_context made;
  made.env = make_environment(process_, {who_, base_, runtime_dir_}, {});
  made.tenant = [this](const std::string& name) { return tenants_.page_of(name); };
  made.count_request = [this](const std::string& name) { return tenants_.count_request(name); };
  return made;
}

/// MCP, or the page where there is one.
io::http_request_handler http_server::handler() const {
  return [has_page = tenants_.page_switch(), to_mcp = http_requests_to(front_end_),
          to_page = page_requests_to(page_)](incoming_request request, memory_budget::share held,
                                             io::http_reply_ptr reply) {
    if (!is_page_target(request.target)) {
      to_mcp(std::move(request), std::move(held), std::move(reply));
    } else if (has_page()) {
      to_page(std::move(request), std::move(held), std::move(reply));
    } else {
      reply->answer(page_refusal(404, "there is no web page here ([ui] enabled is false, or the "
                                      "address is not loopback)"));
    }
  };
}

int http_server::listen(int out) {
  tenants_.have_page(has_ui(config_));
  page_ = process_.system().spawn(web_page, page_context_of_all());
  front_end_ = process_.system().spawn(http_front_end, front_end_context());
  io::http_listener_options options;
  options.address = config_.listen.host;
  options.port = config_.listen.port;
  options.rules.hosts = accepted_hosts(config_);
  options.rules.holder = tenants_.holders();
  options.rules.pages = web_pages();
  options.budget = process_.budget();
  auto opened = io::http_listener::open(process_.io(), options, handler());
  if (!opened) {
    complain(opened.error().message);
    return 1;
  }
  listener_ = std::move(*opened);
  auto host = config_.listen.host.find(':') == std::string::npos ? config_.listen.host
                                                                 : "[" + config_.listen.host + "]";
  auto url = fmt::format("http://{}:{}/mcp", host, listener_->port());
  write_all(out, url + "\n" + (token_.empty() ? "" : token_ + "\n"));
  if (!token_.empty()) {
    write_all(STDERR_FILENO, fmt::format(first_words, url));
  }
  process_.log()->info("serving {} tenants at {}", token_.empty() ? config_.tenants.size() : 1,
                       url);
  return 0;
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
  watch_->set({path_});
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
  config_ = std::move(*next);
  config_.listen = listening;
  tenants_.have_page(has_ui(config_));
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
    reload();
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

/// It asks the tenants until it has ended.
void http_server::stop_page() {
  if (page_) {
    caf::scoped_actor self{process_.system()};
    self->monitor(page_);
    self->send(page_, stop_atom::value);
    self->receive([](const caf::down_msg&) {}, caf::after(page_stop_budget) >> [] {});
  }
}

int http_server::run(int out) {
  auto status = prepare();
  if (status == 0) {
    status = listen(out);
  }
  if (status == 0) {
    watch();
    wait();
    process_.log()->info("stopping");
    drain();
  }
  if (watch_) {
    watch_->close();
  }
  stop_page();
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
  auto runtime_dir = make_runtime_dir(who);
  if (!runtime_dir) {
    complain(runtime_dir.error().message);
    return 2;
  }
  return http_server{line, config, who, *runtime_dir}.run(out);
}

} // namespace bulkhead
