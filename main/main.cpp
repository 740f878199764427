// Start order; the end mirrors it (see application):
//  1. standard descriptors: fd 1 is kept for what was asked for, and everything else that prints
//  goes to stderr
//  2. the command line, and the files that `run` and `servers import` name (root may read what the
//  account may not)
//  3. the account: root is given up
//  4. settings from the environment
//  5. signals are blocked for all threads to come
//  6. the application: instance lock, catalogue, I/O thread, actor system, supervisor and its tree
//  7. the command

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "actors/trusted_file.hpp"
#include "main/account.hpp"
#include "main/application.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/import_servers.hpp"
#include "main/serve_file.hpp"
#include "main/stop_signal.hpp"

namespace bulkhead {

namespace {

struct standard_descriptors {
  int in;
  int out;
};

/// Libraries print to stdout, which would corrupt the protocol there: fd 1 becomes a copy of
/// stderr, and the real one gets a number that no library knows and no child inherits. The same for
/// stdin.
standard_descriptors settle_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // A closed one would be given to the next file that is opened.
      [[maybe_unused]] int opened = ::open("/dev/null", O_RDWR);
    }
  }
  standard_descriptors result{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
                              ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)};
  int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::close(null);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return result;
}

int refuse(const error& reason) {
  complain(reason.message);
  return 2;
}

/// The settings with what is worth a word about the variables.
tl::expected<settings, std::vector<error>> settings_of(const account& who) {
  auto config = read_settings(environment_variable, who.home);
  if (config) {
    auto unknown = unknown_variables(environment_names());
    config->remarks.insert(config->remarks.end(), unknown.begin(), unknown.end());
  }
  return config;
}

void log_start(application& app, const account& who) {
  auto& log = *app.env()->log;
  if (who.changed) {
    log.info("started as root, running as account \"{}\" (state in {})", who.name,
             app.env()->config->state_dir);
  }
}

/// Once; commands that show these themselves don't.
void log_problems(application& app) {
  auto& log = *app.env()->log;
  for (const auto& remark : app.env()->config->remarks) {
    log.warn("{}", remark);
  }
  auto configured = app.catalogue();
  for (const auto& problem : configured->problems) {
    log.log(problem.kind == problem_kind::error ? spdlog::level::warn : spdlog::level::info, "{}",
            to_text(problem));
  }
}

/// A script may also be a pipe: the user names it, and waits for it.
expected<std::string> read_code(const command_line& line, int in) {
  auto most = limits{}.code;
  if (line.file == "-") {
    return read_descriptor(in, "standard input", most);
  }
  int fd = ::open(line.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail(errc::not_found, fmt::format("read \"{}\": {}", line.file, strerror(errno)));
  }
  auto text = read_descriptor(fd, line.file, most);
  ::close(fd);
  return text;
}

/// What was read while we were still who we were started as.
struct early_reading {
  std::string code;
  std::optional<collected_import> import;
};

expected<early_reading> read_early(const command_line& line, int in) {
  early_reading result;
  if (line.what == command_line::verb::run) {
    auto text = read_code(line, in);
    if (!text) {
      return tl::unexpected{text.error()};
    }
    result.code = std::move(*text);
  } else if (line.what == command_line::verb::servers_import) {
    auto collected = collect_import(line, in);
    if (!collected) {
      return tl::unexpected{collected.error()};
    }
    result.import = std::move(*collected);
  }
  return result;
}

/// The tenant that the command looks at, if any.
expected<std::optional<tenant>> looked_at(const command_line& line, const settings& config,
                                          const account& who) {
  using verb = command_line::verb;
  if (line.tenant.empty() || (line.what != verb::ledger && line.what != verb::servers)) {
    return std::nullopt;
  }
  auto one = load_tenant(serve_file_path(line.serve_config, config), line.tenant, config, who);
  return one ? expected<std::optional<tenant>>{std::move(*one)} : tl::unexpected{one.error()};
}

int run_command(const command_line& line, const settings& config, const account& who,
                standard_descriptors fds, early_reading early) {
  using verb = command_line::verb;
  if (line.what == verb::image_build) {
    auto runtime_dir = make_runtime_dir(who);
    return runtime_dir ? build_image(line, config, *runtime_dir) : refuse(runtime_dir.error());
  }
  auto one = looked_at(line, config, who);
  if (!one) {
    return refuse(one.error());
  }
  if (line.what == verb::ledger) {
    return show_ledger(line, *one ? settings_for(config, **one) : config, fds.out);
  }
  if (line.what == verb::approve && (line.list || line.revoke)) {
    return show_approvals(line, config, fds.out);
  }
  if (line.what == verb::token_new || line.what == verb::token_list ||
      line.what == verb::token_revoke || line.what == verb::token_rotate) {
    return run_token(line, config, who, fds.out);
  }
  if (line.what == verb::servers_import) {
    return import_servers(*early.import, line, config, who, own_executable(), fds.in, fds.out);
  }
  if (line.what == verb::serve) {
    return serve_http(line, config, who, fds.out);
  }
  stop_signal stop;
  auto app = application::start(who, config, stop, *one);
  if (!app) {
    return refuse(app.error());
  }
  log_start(**app, who);
  if (line.what == verb::stdio || line.what == verb::run) {
    log_problems(**app);
  }
  auto run = [&] {
    switch (line.what) {
    case verb::run:
      return run_file(**app, stop, line, std::move(early.code), fds.out);
    case verb::doctor:
      return run_doctor(**app, stop, line, fds.out);
    case verb::approve:
      return approve_tool(**app, stop, line, fds.out);
    case verb::servers:
      return show_servers(**app, stop, line, fds.out);
    case verb::login:
      return log_in_to_server(**app, stop, line, fds.out);
    case verb::logout:
      return log_out_of_server(**app, stop, line, fds.out);
    case verb::conformance_client:
      return drive_conformance(**app, stop, line);
    case verb::conformance_server:
      return serve_conformance(**app, stop, line, fds.in, fds.out);
    default:
      return serve_stdio(**app, stop, fds.in, fds.out);
    }
  };
  return (*app)->leave_with(run());
}

/// Some descriptors short, the engine would fail here and there in odd ways. Errors: limit.
expected<void> have_descriptors() {
  constexpr rlim_t least = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= least) {
    return {};
  }
  limit.rlim_cur = std::min(limit.rlim_max, least);
  if (limit.rlim_cur == least && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) {
    return {};
  }
  return fail(errc::limit,
              fmt::format("at most {} open files are allowed here, and at least {} are "
                          "needed; raise the limit (ulimit -n)",
                          limit.rlim_max, least));
}

int start(int argc, char** argv) {
  if (auto enough = have_descriptors(); !enough) {
    return refuse(enough.error());
  }
  auto fds = settle_descriptors();
  auto line = parse_command_line(argc, argv, fds.out);
  auto early = read_early(line, fds.in);
  if (!early) {
    return refuse(early.error());
  }
  auto stay_root = environment_variable("MCP_BRIDGE_ALLOW_ROOTFUL").value_or("") == "1";
  auto who = settle_account(line.account, stay_root);
  if (!who) {
    return refuse(who.error());
  }
  auto config = settings_of(*who);
  if (!config) {
    for (const auto& problem : config.error()) {
      refuse(problem);
    }
    return 2;
  }
  using verb = command_line::verb;
  if (line.what != verb::stdio && line.what != verb::serve) {
    config->pool.ceiling = 0;
  }
  return run_command(line, *config, *who, fds, std::move(*early));
}

} // namespace

} // namespace bulkhead

int main(int argc, char** argv) {
  // Large buffers go back to the system at once, instead of raising the bound from which they do;
  // and threads share few heaps.
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);
  mallopt(M_ARENA_MAX, 4);
  // Whatever the machine refuses (descriptors, threads, memory) is told rather than a crash.
  try {
    return bulkhead::start(argc, argv);
  } catch (const std::system_error& refused) {
    bool descriptors = refused.code() == std::errc::too_many_files_open;
    bulkhead::complain(fmt::format(
        "{}{}", refused.what(), descriptors ? "; raise the limit of open files (ulimit -n)" : ""));
  } catch (const std::bad_alloc&) {
    bulkhead::complain("there isn't enough memory to go on");
  } catch (const std::exception& failure) {
    bulkhead::complain(failure.what());
  }
  return 1;
}
