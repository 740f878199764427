#include "main/linked_files.hpp"

#include <fmt/format.h>

#include "protocol/content_digest.hpp"

namespace bulkhead {

namespace {

/// Reads one file; answers why its servers, and those of the others, mustn't be used.
expected<std::optional<host_file>> read_source(const import_source& source,
                                               const import_record& record, const trust& allowed) {
  bool projects = source.scope == host_scope::project;
  auto text = projects ? read_any_file(source.path, largest_host_file)
                       : read_trusted_file(source.path, largest_host_file, allowed);
  if (!text) {
    if (source.switches && text.error().code == errc::not_found && source.digest.empty()) {
      return std::nullopt;
    }
    return tl::unexpected{text.error()};
  }
  if (!source.digest.empty() && content_digest(*text) != source.digest) {
    return fail(errc::denied,
                fmt::format("has changed since it was approved, so none of the servers imported "
                            "from {} for {} are used; look at it, and approve it anew: {}",
                            title_of(record.host), record.project, import_command(record)));
  }
  return host_file{source.path, std::move(*text), source.scope, source.switches};
}

} // namespace

std::string import_command(const import_record& record) {
  return fmt::format("bulkhead servers import {} {}{}", to_string(record.host),
                     record.linked ? "--link" : "--copy",
                     record.project.empty() ? std::string{} : " --project " + record.project);
}

config_file read_linked_files(const std::string& path, const import_record& record,
                              const trust& allowed, const environment_lookup& environment) {
  imported_file imported{std::string{title_of(record.host)}, {}, {}};
  std::vector<host_file> files;
  for (const auto& source : record.files) {
    auto file = read_source(source, record, allowed);
    if (!file) {
      imported.problems.push_back({source.path, {}, file.error().message, problem_kind::error});
      return {path, "{\"mcpServers\": {}}", {}, std::move(imported)};
    }
    if (*file) {
      files.push_back(std::move(**file));
    }
  }
  auto read = read_host_files(files, {record.host, record.home, record.project, environment});
  bind_env_files(read.servers, record.env_files);
  imported.sources = std::move(read.sources);
  imported.problems = std::move(read.problems);
  nlohmann::json document{{"mcpServers", std::move(read.servers)}};
  return {path, document.dump(), {}, std::move(imported)};
}

} // namespace bulkhead
