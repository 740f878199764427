#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "actors/trusted_file.hpp"
#include "main/configuration.hpp"
#include "main/import_servers.hpp"
#include "protocol/content_digest.hpp"
#include "protocol/env_file.hpp"

namespace bulkhead {

namespace {

/// The home of whoever started us.
std::string own_home() {
  if (auto home = environment_variable("HOME"); home && home->starts_with('/')) {
    return *home;
  }
  const auto* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_dir : "/";
}

expected<std::string> project_folder(const std::string& named) {
  std::error_code failure;
  auto path = std::filesystem::canonical(named, failure);
  if (failure || !std::filesystem::is_directory(path, failure)) {
    return fail(errc::not_found, fmt::format("there is no folder \"{}\"", named));
  }
  return path.string();
}

/// The first of a location's paths that exists, or the first.
std::string chosen_path(const host_location& location) {
  auto found = std::find_if(location.paths.begin(), location.paths.end(), [](const auto& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  });
  return found != location.paths.end() ? *found : location.paths.front();
}

/// Reads a file that may be missing.
expected<std::optional<std::string>> read_if_there(const std::string& path) {
  auto text = read_any_file(path, largest_host_file);
  if (text) {
    return std::optional{std::move(*text)};
  }
  if (text.error().code == errc::not_found) {
    return std::nullopt;
  }
  return fail(text.error().code, fmt::format("\"{}\" {}", path, text.error().message));
}

void add_file(collected_import& target, host_file file) {
  import_source source{file.path, file.scope, file.switches, {}};
  if (file.scope == host_scope::project) {
    source.digest = content_digest(file.text);
  }
  target.record.files.push_back(std::move(source));
  target.files.push_back(std::move(file));
}

expected<void> collect_named(collected_import& target, const std::string& named, int in) {
  auto scope = target.record.project.empty() ? host_scope::user : host_scope::project;
  if (named == "-") {
    auto text = read_descriptor(in, "standard input", largest_host_file);
    if (!text) {
      return tl::unexpected{text.error()};
    }
    target.from_input = true;
    add_file(target, {"/dev/stdin", std::move(*text), scope});
    return {};
  }
  auto path = std::filesystem::absolute(named).lexically_normal().string();
  auto text = read_any_file(path, largest_host_file);
  if (!text) {
    return fail(text.error().code, fmt::format("\"{}\" {}", path, text.error().message));
  }
  add_file(target, {path, std::move(*text), scope});
  return {};
}

expected<void> collect_usual(collected_import& target) {
  auto title = title_of(target.record.host);
  auto locations = host_locations(target.record.host, target.record.home, target.record.project,
                                  environment_variable);
  if (locations.empty()) {
    return fail(errc::not_found, fmt::format("{} keeps no definitions in projects", title));
  }
  bool found = false;
  std::vector<std::string> looked_at;
  for (const auto& location : locations) {
    auto path = chosen_path(location);
    auto text = read_if_there(path);
    if (!text) {
      return tl::unexpected{text.error()};
    }
    if (*text) {
      add_file(target, {path, std::move(**text), location.scope, location.switches});
      found = found || !location.switches;
    } else if (location.switches) {
      target.record.files.push_back({path, location.scope, true, {}});
    }
    if (!location.switches) {
      looked_at.push_back(path);
    }
  }
  if (!found) {
    return fail(errc::not_found,
                fmt::format("{} has no definitions here: there is no {}; name a file with --file",
                            title, fmt::join(looked_at, ", and no ")));
  }
  return {};
}

/// What a project's entries refer to is approved with them. A file that can't be read is told when
/// the entry is.
void collect_env_files(collected_import& target) {
  for (const auto& [name, entry] : target.servers.servers.items()) {
    auto named = entry.find("envFile");
    if (target.record.project.empty() || named == entry.end() || !named->is_string()) {
      continue;
    }
    const auto& path = named->get_ref<const std::string&>();
    if (auto text = read_any_file(path, largest_env_file)) {
      target.record.env_files[path] = content_digest(*text);
    }
  }
  bind_env_files(target.servers.servers, target.record.env_files);
}

} // namespace

expected<collected_import> collect_import(const command_line& line, int in) {
  collected_import result;
  result.record.host = *host_from_string(line.import_host);
  result.record.linked = line.link;
  result.record.home = own_home();
  if (!line.project.empty()) {
    auto folder = project_folder(line.project);
    if (!folder) {
      return tl::unexpected{folder.error()};
    }
    result.record.project = std::move(*folder);
  }
  auto collected = line.file.empty() ? collect_usual(result) : collect_named(result, line.file, in);
  if (!collected) {
    return tl::unexpected{collected.error()};
  }
  result.servers = read_host_files(result.files, {result.record.host, result.record.home,
                                                  result.record.project, environment_variable});
  collect_env_files(result);
  return result;
}

} // namespace bulkhead
