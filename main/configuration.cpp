#include "main/configuration.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "actors/io/child_process.hpp"
#include "protocol/limits.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t largest_config = 4 * mebibyte;

std::vector<std::string> config_paths(const settings& config) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (std::filesystem::directory_iterator file{config.state_dir, ignored}, end; file != end;
       file.increment(ignored)) {
    if (file->path().extension() == ".json") {
      paths.push_back(file->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  if (!config.servers_config.empty()) {
    paths.push_back(config.servers_config);
  }
  return paths;
}

/// Where a command leads by PATH and symbolic links; empty when it isn't found.
std::string canonical_command(const std::string& command) {
  auto found = io::find_program(command, {"PATH=" + environment_variable("PATH").value_or("")});
  std::error_code failure;
  auto path = found ? std::filesystem::canonical(*found, failure) : std::filesystem::path{};
  return failure ? std::string{} : path.string();
}

} // namespace

std::optional<std::string> environment_variable(std::string_view name) {
  const char* value = std::getenv(std::string{name}.c_str());
  return value != nullptr ? std::optional<std::string>{value} : std::nullopt;
}

expected<std::string> read_file(const std::string& path, std::size_t most) {
  // Without O_NONBLOCK a fifo would block us for ever.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return fail(errno == ENOENT ? errc::not_found : errc::unavailable,
                fmt::format("read \"{}\": {}", path, strerror(errno)));
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(errc::unavailable, fmt::format("read \"{}\": it is no regular file", path));
  }
  auto text = read_descriptor(fd, path, most);
  ::close(fd);
  return text;
}

expected<std::string> read_descriptor(int fd, const std::string& what, std::size_t most) {
  std::string text;
  std::vector<char> buffer(64 * kibibyte);
  ssize_t count = 0;
  while ((count = ::read(fd, buffer.data(), buffer.size())) > 0 && text.size() <= most) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (count < 0) {
    return fail(errc::unavailable, fmt::format("read \"{}\": {}", what, strerror(errno)));
  }
  if (text.size() > most) {
    return fail(errc::too_large, fmt::format("read \"{}\": it has over {} bytes", what, most));
  }
  return text;
}

server_catalogue load_catalogue(const settings& config, const std::string& home,
                                const std::string& executable) {
  std::vector<config_file> files;
  std::vector<config_problem> unreadable;
  for (const auto& path : config_paths(config)) {
    auto text = read_file(path, largest_config);
    if (text) {
      files.push_back({path, std::move(*text)});
    } else {
      unreadable.push_back({path, {}, text.error().message});
    }
  }
  self_check self{executable, config.allow_self_server, canonical_command};
  auto catalogue = read_server_config(files, environment_variable, home, self);
  catalogue.problems.insert(catalogue.problems.begin(), unreadable.begin(), unreadable.end());
  return catalogue;
}

} // namespace bulkhead
