#include "actors/io/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "actors/io/child_process.hpp"

namespace bulkhead::io {

namespace {

/// posix_spawn can't write to a file between fork and exec, so a shell's first act is to join the
/// cgroups: from then on everything the program starts is accounted there.
constexpr const char* join_script = R"(n=$1; shift
while [ "$n" -gt 0 ]; do
  echo 0 >"$1/cgroup.procs" || exit 125
  shift; n=$((n-1))
done
exec "$@")";

std::vector<std::string> full_argv(const process_spec& spec, const std::string& program) {
  std::vector<std::string> argv;
  if (!spec.cgroups.empty()) {
    argv = {"/bin/sh", "-c", join_script, "sh", std::to_string(spec.cgroups.size())};
    argv.insert(argv.end(), spec.cgroups.begin(), spec.cgroups.end());
    argv.push_back(program);
  } else {
    argv.push_back(spec.argv.front());
  }
  argv.insert(argv.end(), spec.argv.begin() + 1, spec.argv.end());
  return argv;
}

std::vector<char*> c_array(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& text : strings) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

struct pipe_pair {
  descriptor read;
  descriptor write;
};

bool open_pipe(pipe_pair& pair) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) {
    return false;
  }
  pair.read.reset(fds[0]);
  pair.write.reset(fds[1]);
  return true;
}

/// posix_spawn's two option objects, freed together.
struct spawn_options {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  spawn_options() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  spawn_options(const spawn_options&) = delete;
  spawn_options& operator=(const spawn_options&) = delete;
  ~spawn_options() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  void set(const process_spec& spec, int in, int out, int err) {
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    // Whoever started us may have left descriptors open.
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (!spec.cwd.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions, spec.cwd.c_str());
    }
    // Blocked and ignored signals would be inherited, and SIGTERM then has no effect.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
  }
};

/// A program named by a relative path lies where it will run, as for a shell in that folder.
std::string within(const std::string& folder, const std::string& program) {
  bool relative = program.find('/') != std::string::npos && program.front() != '/';
  return relative && folder.starts_with('/') ? folder + "/" + program : program;
}

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string_view path_of(const std::vector<std::string>& env) {
  for (std::string_view entry : env) {
    if (entry.starts_with("PATH=")) {
      return entry.substr(5);
    }
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

} // namespace

expected<std::string> find_program(const std::string& program,
                                   const std::vector<std::string>& env) {
  if (program.find('/') != std::string::npos) {
    if (is_executable_file(program)) {
      return program;
    }
    return fail(errc::not_found, fmt::format("\"{}\" is no executable file{}", program,
                                             program.find(' ') != std::string::npos
                                                 ? "; arguments belong into args, not into command"
                                                 : ""));
  }
  auto path = path_of(env);
  for (std::string_view rest = path; !rest.empty();) {
    auto colon = std::min(rest.find(':'), rest.size());
    auto candidate = std::string{rest.substr(0, colon)} + "/" + program;
    if (colon > 0 && is_executable_file(candidate)) {
      return candidate;
    }
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return fail(errc::not_found,
              fmt::format("command \"{}\" is not on the PATH ({})", program, path));
}

expected<spawned_process> spawn(const process_spec& spec) {
  if (spec.argv.empty()) {
    return fail(errc::invalid_argument, "start process: the command is empty");
  }
  auto program = find_program(within(spec.cwd, spec.argv.front()), spec.env);
  if (!program) {
    return tl::unexpected{program.error()};
  }
  pipe_pair in;
  pipe_pair out;
  pipe_pair err;
  if (!open_pipe(in) || !open_pipe(out) || !open_pipe(err)) {
    return fail(errc::unavailable,
                fmt::format("start \"{}\": no pipe: {}", *program, strerror(errno)));
  }
  spawn_options options;
  options.set(spec, in.read.get(), out.write.get(), err.write.get());
  auto argv = full_argv(spec, *program);
  auto file = spec.cgroups.empty() ? *program : argv.front();
  spawned_process result;
  int failure = posix_spawn(&result.pid, file.c_str(), &options.actions, &options.attributes,
                            c_array(argv).data(), c_array(spec.env).data());
  if (failure != 0) {
    return fail(errc::unavailable,
                fmt::format("start \"{}\" in \"{}\": {}", *program,
                            spec.cwd.empty() ? "." : spec.cwd, strerror(failure)));
  }
  // glibc 2.36 declares pidfd_open without C linkage.
  result.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, result.pid, 0)));
  if (result.pidfd.get() < 0) {
    int cause = errno;
    ::kill(-result.pid, SIGKILL);
    ::waitpid(result.pid, nullptr, 0);
    return fail(errc::unavailable,
                fmt::format("start \"{}\": no process descriptor: {}", *program, strerror(cause)));
  }
  result.in = std::move(in.write);
  result.out = std::move(out.read);
  result.err = std::move(err.read);
  return result;
}

} // namespace bulkhead::io
