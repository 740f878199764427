#include "protocol/container_spec.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace bulkhead {

namespace {

/// Variables that docker's and a remote podman's settings fill in from the host, at times with
/// passwords, unless they are given.
constexpr std::array<std::string_view, 10> proxy_variables = {
    "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy"};

/// One field of a comma-separated value (RFC 4180), which is how both engines read `--mount`.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (char c : text) {
    result.append(c == '"' ? "\"\"" : std::string(1, c));
  }
  return result + '"';
}

class run_command {
public:
  run_command(const engine_profile& engine, const container_spec& spec)
      : podman_(engine.engine == container_engine::podman), engine_(engine), spec_(spec) {}

  std::vector<std::string> build() {
    start();
    identity();
    isolation();
    if (engine_.limit_flags) {
      engine_limits();
    }
    process_limits();
    file_systems();
    surroundings();
    // After "--" nothing is taken for an option, whatever the image is called.
    add({"--", spec_.image});
    result_.insert(result_.end(), spec_.command.begin(), spec_.command.end());
    return std::move(result_);
  }

private:
  void add(std::initializer_list<std::string> words) {
    result_.insert(result_.end(), words.begin(), words.end());
  }

  void start() {
    add({engine_.binary});
    if (podman_ && !engine_.oci_runtime.empty()) {
      add({"--runtime", engine_.oci_runtime});
    }
    add({"run", "-i", "--rm", "--pull=never"});
    if (!podman_ && !engine_.oci_runtime.empty()) {
      add({"--runtime", engine_.oci_runtime});
    }
  }

  void identity() {
    add({"--name", spec_.name, "--label", fmt::format("{}={}", owner_label, spec_.instance)});
    if (!spec_.cid_file.empty()) {
      add({"--cidfile", spec_.cid_file});
    }
    add({"--log-driver", "none", "--hostname", "sandbox"});
  }

  void isolation() {
    add({"--network", "none", "--ipc", "private", "--cgroupns", "private"});
    if (podman_) {
      // Said although it is the default, which the user's containers.conf may change.
      add({"--pid", "private", "--uts", "private", "--no-hosts"});
      if (engine_.rootless) {
        // The account itself has no id inside, and each container counts its own processes.
        add({"--userns=nomap"});
      }
    }
    add({"--user", fmt::format("{}:{}", spec_.uid, spec_.gid), "--cap-drop", "all"});
    add({"--security-opt", "no-new-privileges"});
    if (!spec_.seccomp_profile.empty()) {
      add({"--security-opt", "seccomp=" + spec_.seccomp_profile});
    }
  }

  void engine_limits() {
    if (spec_.memory > 0) {
      // Swap included: alone, --memory allows the same again in swap.
      auto bytes = fmt::format("{}b", spec_.memory);
      add({"--memory", bytes, "--memory-swap", bytes});
    }
    if (spec_.pids > 0) {
      add({"--pids-limit", std::to_string(spec_.pids)});
    }
    if (spec_.cpus) {
      add({"--cpus", fmt::format("{}", *spec_.cpus)});
    }
  }

  void process_limits() {
    ulimit("nofile", engine_.nofile);
    ulimit("nproc", engine_.nproc);
    ulimit("fsize", largest_file(spec_));
    ulimit("core", 0);
    // When the host runs short, the sandbox goes first, not the command that watches it.
    add({"--oom-score-adj", "1000"});
    if (podman_ && spec_.max_lifetime > 0) {
      add({"--timeout", std::to_string(spec_.max_lifetime)});
    }
  }

  void ulimit(std::string_view name, std::uint64_t value) {
    add({"--ulimit", fmt::format("{}={}:{}", name, value, value)});
  }

  void file_systems() {
    add({"--read-only"});
    if (podman_) {
      // Otherwise /run and /var/tmp are writable, without a size and executable, and volumes that
      // the image declares become writable folders of the host.
      add({"--read-only-tmpfs=false", "--image-volume", "ignore"});
    }
    add({"--shm-size", fmt::format("{}b", shm_size)});
    tmpfs("/tmp", spec_.tmp_size);
    tmpfs("/workspace", spec_.workspace_size);
    for (const auto& mount : spec_.mounts) {
      bind(mount);
    }
    add({"--workdir", "/workspace"});
  }

  void tmpfs(std::string_view target, std::uint64_t size) {
    // podman would copy what the image holds at that place.
    add({"--tmpfs", fmt::format("{}:rw,noexec,nosuid,nodev,size={},mode=1777{}", target, size,
                                podman_ ? ",notmpcopyup" : "")});
  }

  void bind(const container_mount& mount) {
    // Not -v: it can't tell a colon in a path from its own, and docker makes missing folders.
    auto value = "type=bind," + csv_field("source=" + mount.source) + ',' +
                 csv_field("target=" + mount.target);
    if (mount.read_only) {
      value += ",readonly";
    }
    if (podman_) {
      value += ",nosuid,nodev,noexec";
    }
    add({"--mount", value});
  }

  void surroundings() {
    add({"--init", "--no-healthcheck", "--entrypoint", ""});
    if (podman_) {
      // systemd mode mounts writable folders; a notify socket would be mounted into the container;
      // detach keys would be looked for in the frames.
      add({"--systemd", "false", "--sdnotify", "ignore", "--detach-keys", "", "--unsetenv-all"});
    }
    if (podman_ && !engine_.remote) {
      add({"--http-proxy=false", "--env-host=false"});
    } else {
      for (auto name : proxy_variables) {
        add({"--env", fmt::format("{}=", name)});
      }
    }
    for (auto variable : sandbox_environment) {
      add({"--env", std::string(variable)});
    }
  }

  bool podman_;
  const engine_profile& engine_;
  const container_spec& spec_;
  std::vector<std::string> result_;
};

bool is_name(std::string_view text) {
  auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= 128 && letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return letter_or_digit(c) || c == '_' || c == '.' || c == '-';
         });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_path(std::string_view text) {
  return text.starts_with('/') && !has_control(text);
}

/// Is `target` a place for a mount: absolute, in plain form, and not one the sandbox itself uses?
bool is_mount_target(std::string_view target) {
  if (!is_path(target) || target.ends_with('/') || target.find("//") != std::string_view::npos ||
      (std::string(target) + '/').find("/./") != std::string::npos ||
      (std::string(target) + '/').find("/../") != std::string::npos) {
    return false;
  }
  constexpr std::array<std::string_view, 6> reserved = {"/tmp", "/workspace", "/proc",
                                                        "/sys", "/dev",       "/run"};
  return std::none_of(reserved.begin(), reserved.end(), [&](std::string_view place) {
    return target == place || (target.starts_with(place) && target[place.size()] == '/');
  });
}

expected<void> check_mounts(const std::vector<container_mount>& mounts) {
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (!is_path(mounts[i].source)) {
      return fail(errc::invalid_argument, "a folder to mount must have an absolute path without "
                                          "control characters");
    }
    auto same_target = [&](const container_mount& other) {
      return other.target == mounts[i].target;
    };
    if (!is_mount_target(mounts[i].target) ||
        std::any_of(mounts.begin(), mounts.begin() + static_cast<std::ptrdiff_t>(i), same_target)) {
      return fail(
          errc::invalid_argument,
          fmt::format("the mount of {} can't be placed where it was to go in the container: "
                      "that place is taken, reserved, or no plain absolute path",
                      mounts[i].source));
    }
  }
  return {};
}

} // namespace

std::uint64_t largest_file(const container_spec& spec) {
  return std::max(spec.tmp_size, spec.workspace_size);
}

expected<void> check_container_spec(const container_spec& spec) {
  auto refuse = [](const char* message) { return fail(errc::invalid_argument, message); };
  if (!is_name(spec.name) || !is_name(spec.instance)) {
    return refuse(
        "a container's name and instance must be 1 to 128 letters, digits, \"_\", \".\" or "
        "\"-\", and start with a letter or digit");
  }
  if (spec.image.empty() || spec.image.starts_with('-') || has_control(spec.image)) {
    return refuse("a container needs an image reference that doesn't start with \"-\"");
  }
  if (spec.uid == 0 || spec.gid == 0) {
    return refuse("a container's user and group must not be 0 (root)");
  }
  if (spec.memory == 0 || spec.pids == 0 || spec.tmp_size == 0 || spec.workspace_size == 0) {
    return refuse(
        "a container needs limits for memory and pids, and sizes for /tmp and /workspace");
  }
  if (spec.cpus && !(*spec.cpus >= 0.01)) {
    return refuse("a container's cpus must be 0.01 or more");
  }
  if (!is_path(spec.seccomp_profile) || !(spec.cid_file.empty() || is_path(spec.cid_file))) {
    return refuse(
        "a container's seccomp profile and cid file must be absolute paths without control "
        "characters");
  }
  if (spec.command.empty()) {
    return refuse("a container needs a command");
  }
  return check_mounts(spec.mounts);
}

std::vector<std::string> run_arguments(const engine_profile& engine, const container_spec& spec) {
  return run_command(engine, spec).build();
}

std::vector<std::string> remove_arguments(const engine_profile& engine, const std::string& name) {
  if (engine.engine == container_engine::podman) {
    // Without -t 0 podman waits ten seconds for a program that ignores SIGTERM.
    return {engine.binary, "rm", "-f", "-v", "-t", "0", "--ignore", name};
  }
  return {engine.binary, "rm", "-f", "-v", name};
}

std::vector<std::string> list_arguments(const engine_profile& engine) {
  const char* format = engine.engine == container_engine::podman
                           ? "{{{{.Names}}}} {{{{index .Labels \"{}\"}}}}"
                           : "{{{{.Names}}}} {{{{.Label \"{}\"}}}}";
  return {engine.binary, "ps",
          "-a",          "--no-trunc",
          "--filter",    fmt::format("label={}", owner_label),
          "--format",    fmt::format(fmt::runtime(format), owner_label)};
}

} // namespace bulkhead
