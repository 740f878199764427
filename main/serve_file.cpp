#include "main/serve_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "actors/trusted_file.hpp"
#include "actors/unique_descriptor.hpp"
#include "main/configuration.hpp"
#include "main/private_file.hpp"
#include "protocol/config_keys.hpp"
#include "protocol/edit_distance.hpp"
#include "protocol/setting_values.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Another process changes the file within milliseconds.
constexpr auto lock_patience = 2s;
constexpr auto lock_interval = 10ms;

tl::unexpected<error> failed(std::string_view what, const std::string& path) {
  return fail(errc::unavailable, fmt::format("{} \"{}\": {}", what, path, std::strerror(errno)));
}

/// Held until it is closed. The folder, since the file is replaced.
expected<unique_descriptor> locked(const std::string& folder) {
  unique_descriptor held{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!held) {
    return failed("open", folder);
  }
  auto until = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until) {
      return failed("lock", folder);
    }
    std::this_thread::sleep_for(lock_interval);
  }
  return held;
}

/// Where the file really is, should it be a link.
std::filesystem::path real_path(const std::string& path) {
  std::error_code failure;
  auto real = std::filesystem::canonical(path, failure);
  return failure ? std::filesystem::path{path} : real;
}

} // namespace

std::string serve_file_path(const std::string& given, const settings& config) {
  auto variable = environment_variable("MCP_BRIDGE_SERVE_CONFIG").value_or("");
  if (given.empty() && variable.empty()) {
    return config.state_dir + "/bulkhead.toml";
  }
  auto home = environment_variable("HOME").value_or("");
  return given.empty() ? std::filesystem::absolute(expand_home(variable, home)).string() : given;
}

expected<std::string> read_serve_file(const std::string& path, const settings& config,
                                      const account& who) {
  auto allowed = trusted_by(config, who);
  allowed.guest_folders.push_back(config.state_dir + "/tenants");
  auto text = read_trusted_file(path, largest_serve_config, allowed);
  if (!text) {
    return fail(text.error().code, fmt::format("\"{}\": {}", path, text.error().message));
  }
  return text;
}

tl::expected<serve_config, std::vector<error>>
load_serve_file(const std::string& path, const settings& config, const account& who) {
  auto text = read_serve_file(path, config, who);
  if (!text) {
    return tl::unexpected(std::vector<error>{text.error()});
  }
  return read_serve_config(*text, path, config);
}

tl::unexpected<error> no_such_tenant(const serve_config& config, const std::string& name,
                                     const std::string& path) {
  std::vector<std::string_view> names;
  for (const auto& each : config.tenants) {
    names.push_back(each.name);
  }
  return fail(errc::not_found,
              fmt::format("there is no tenant \"{}\" in {}{}; `bulkhead token new {} --add-tenant` "
                          "makes it",
                          shown_value(name), path, did_you_mean(closest_name(name, names)),
                          shown_value(name)));
}

expected<tenant> load_tenant(const std::string& path, const std::string& name,
                             const settings& config, const account& who) {
  auto read = load_serve_file(path, config, who);
  if (!read) {
    return tl::unexpected{read.error().front()};
  }
  const auto* one = read->find(name);
  if (one == nullptr) {
    return no_such_tenant(*read, name, path);
  }
  auto folder = settings_for(config, *one).state_dir;
  if (::access(folder.c_str(), F_OK) != 0 && errno == ENOENT) {
    return fail(errc::not_found, fmt::format("tenant \"{}\" has nothing yet: its folder \"{}\" is "
                                             "made when `bulkhead serve` starts with it",
                                             name, folder));
  }
  return *one;
}

expected<void>
change_serve_file(const std::string& path, const settings& config, const account& who, bool make,
                  const std::function<expected<std::string>(std::string_view text)>& change) {
  auto real = real_path(path);
  auto folder = real.parent_path().string();
  if (make && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("make the folder", folder);
  }
  auto lock = locked(folder);
  if (!lock) {
    return tl::unexpected{lock.error()};
  }
  mode_t mode = 0600;
  auto text = read_serve_file(path, config, who);
  if (!text && !(make && text.error().code == errc::not_found)) {
    return tl::unexpected{text.error()};
  }
  auto changed = change(text ? std::string_view{*text} : std::string_view{});
  if (!changed) {
    return tl::unexpected{changed.error()};
  }
  if (text) {
    struct stat info {};
    // A file that was made unwritable, or is root's, isn't replaced behind its owner's back.
    if (::stat(real.c_str(), &info) != 0) {
      return failed("examine", path);
    }
    if (::access(real.c_str(), W_OK) != 0) {
      auto refused = failed("write", path);
      if (info.st_uid != who.uid) {
        refused.value().message += fmt::format("; it belongs to uid {}: as root, chown {} \"{}\"",
                                               info.st_uid, who.name, real.string());
      }
      return refused;
    }
    mode = info.st_mode & 0777;
  }
  return write_private_file(folder, real.filename().string(), *changed, mode);
}

} // namespace bulkhead
