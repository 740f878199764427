#include "main/configuration.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "actors/io/child_process.hpp"
#include "actors/trusted_file.hpp"

namespace bulkhead {

namespace {

config_file read_one(const std::string& path, const trust& allowed) {
  auto text = read_trusted_file(path, largest_config_file, allowed);
  return text ? config_file{path, std::move(*text)}
              : config_file{path, {}, std::move(text.error().message)};
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

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text{*variable};
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

server_catalogue load_catalogue(const settings& config, const account& who,
                                const std::string& executable) {
  // Another instance may share the default state folder with its guests.
  trust allowed{who.uid, {config.state_dir + "/user_tools", who.home + "/MCPs/user_tools"}};
  std::vector<config_file> files;
  auto paths = list_trusted_folder(config.state_dir, allowed);
  if (!paths) {
    files.push_back({config.state_dir, {}, std::move(paths.error().message)});
    paths = std::vector<std::string>{};
  }
  for (const auto& path : *paths) {
    files.push_back(read_one(path, allowed));
  }
  if (!config.servers_config.empty()) {
    files.push_back(read_one(config.servers_config, allowed));
  }
  self_check self{executable, config.allow_self_server, canonical_command};
  return read_server_config(files, environment_variable, who.home, self);
}

} // namespace bulkhead
