#include "main/configuration.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "actors/io/child_process.hpp"
#include "main/linked_files.hpp"
#include "protocol/config_text.hpp"
#include "protocol/env_file.hpp"
#include "protocol/import_record.hpp"
#include "protocol/shared_servers.hpp"

namespace bulkhead {

namespace {

/// Reads one configuration after the other, and keeps account of what it looked at.
class configuration_loader {
public:
  configuration_loader(const trust& allowed, const load_options& options)
      : allowed_{allowed}, options_{options} {}

  void add(const std::string& path);
  void add_shared(const shared_file& which);
  void add_own(const settings& config);
  void add_refused(const std::string& path, std::string why) {
    files.push_back({path, {}, std::move(why), {}});
  }

  std::vector<config_file> files;
  std::vector<std::string> dependencies;
  std::vector<std::string> unmatched; ///< globs that name no shared server

private:
  config_file read(const std::string& path, const trust& allowed);
  const trust& allowed_;
  const load_options& options_;
};

void configuration_loader::add(const std::string& path) {
  dependencies.push_back(path);
  auto other = options_.instead.find(path);
  files.push_back(other != options_.instead.end() ? other->second : read(path, allowed_));
}

void configuration_loader::add_shared(const shared_file& which) {
  dependencies.push_back(which.path);
  auto file = read(which.path, which.allowed);
  if (which.only && file.refusal.empty()) {
    if (auto theirs = select_servers(file.text, *which.only)) {
      file.text = std::move(theirs->text);
      unmatched = std::move(theirs->unmatched);
    } // else whoever reads it will say why
  }
  files.push_back(std::move(file));
}

/// What concerns the whole file is told by whoever runs its servers: of a rule about a server that
/// isn't this tenant's it would be said that there is no such server.
void settle_shared_problems(const shared_file& which, const std::vector<std::string>& unmatched,
                            std::vector<config_problem>& problems) {
  if (!which.only) {
    return;
  }
  std::erase_if(problems, [&](const config_problem& problem) {
    return problem.file == which.path && (problem.entry.empty() || problem.entry == "policy");
  });
  for (const auto& glob : unmatched) {
    problems.push_back({which.path, {}, fmt::format("\"{}\" names none of its servers", glob)});
  }
}

config_file configuration_loader::read(const std::string& path, const trust& allowed) {
  auto text = read_trusted_file(path, largest_config_file, allowed);
  if (!text) {
    return {path, {}, std::move(text.error().message), {}};
  }
  config_file own{path, std::move(*text), {}, {}};
  auto document = read_config_json(own.text, {largest_config_file});
  if (!document) {
    return own; // whoever reads it will say why
  }
  auto record = read_import_record(*document);
  if (!record) {
    return {path, {}, std::move(record.error().message), {}};
  }
  if (!*record) {
    return own;
  }
  if (options_.own_only) {
    imported_file left_out{std::string{title_of((*record)->host)}, {}, {}};
    left_out.problems.push_back({path,
                                 {},
                                 "imported servers aren't used by a server for several users",
                                 problem_kind::remark});
    return {path, "{\"mcpServers\": {}}", {}, std::move(left_out)};
  }
  if (!(*record)->linked) {
    return own;
  }
  for (const auto& source : (*record)->files) {
    dependencies.push_back(source.path);
  }
  return read_linked_files(path, **record, allowed, environment_variable);
}

/// Adds the files of the state folder and the one that the settings name.
void configuration_loader::add_own(const settings& config) {
  dependencies.push_back(config.state_dir);
  auto paths = list_trusted_folder(config.state_dir, allowed_);
  if (!paths) {
    add_refused(config.state_dir, std::move(paths.error().message));
    paths = std::vector<std::string>{};
  }
  std::set<std::string> all{paths->begin(), paths->end()};
  for (const auto& [path, file] : options_.instead) {
    all.insert(path);
  }
  for (const auto& path : all) {
    add(path);
  }
  if (!config.servers_config.empty()) {
    add(config.servers_config);
  }
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

std::string own_executable() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

trust trusted_by(const settings& config, const account& who) {
  // Another instance may share the default state folder with its guests.
  return {who.uid, {config.state_dir + "/user_tools", who.home + "/MCPs/user_tools"}};
}

loaded_configuration load_configuration(const settings& config, const account& who,
                                        const std::string& executable,
                                        const load_options& options) {
  auto allowed = options.only_shared ? options.shared->allowed : trusted_by(config, who);
  configuration_loader loader{allowed, options};
  if (options.shared) {
    loader.add_shared(*options.shared);
  }
  if (!options.only_shared) {
    loader.add_own(config);
  }
  file_lookup referred = [&](const std::string& path, bool bound) {
    loader.dependencies.push_back(path);
    return bound ? read_any_file(path, largest_env_file)
                 : read_trusted_file(path, largest_env_file, allowed);
  };
  self_check self{executable, config.allow_self_server, canonical_command};
  auto catalogue = read_server_config(loader.files, environment_variable, who.home, self, referred);
  if (options.shared) {
    settle_shared_problems(*options.shared, loader.unmatched, catalogue.problems);
  }
  return {std::move(catalogue), std::move(loader.dependencies)};
}

} // namespace bulkhead
