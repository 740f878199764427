#include "main/browser.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "actors/io/child_process.hpp"
#include "main/configuration.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

/// The program's path; empty if there is none.
std::string browser_program() {
  auto chosen = environment_variable("BROWSER").value_or("");
  auto name = chosen.substr(0, chosen.find(':'));
  if (name.empty()) {
#ifdef __APPLE__
    name = "open";
#else
    auto has_screen = !environment_variable("DISPLAY").value_or("").empty() ||
                      !environment_variable("WAYLAND_DISPLAY").value_or("").empty();
    name = has_screen ? "xdg-open" : "";
#endif
  }
  auto path = "PATH=" + environment_variable("PATH").value_or("/usr/bin:/bin");
  auto found = name.empty() ? fail(errc::not_found, "") : io::find_program(name, {path});
  return found.value_or("");
}

} // namespace

bool open_browser(const std::string& url) {
  auto program = browser_program();
  if (program.empty() || !read_web_url(url, "a URL")) {
    return false;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  // It goes on when the login is over, with the signals that we have blocked.
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  auto page = url;
  std::array<char*, 3> argv{program.data(), page.data(), nullptr};
  pid_t pid = -1;
  auto failure = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure == 0;
}

} // namespace bulkhead
