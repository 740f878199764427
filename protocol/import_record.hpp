#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/host_config.hpp"

namespace bulkhead {

/// A host's file that servers were imported from.
struct import_source {
  std::string path;
  host_scope scope = host_scope::user;
  bool switches = false;
  /// The approved content of a project's file (see `content_digest`); empty for the user's own, and
  /// for one of switches that wasn't there.
  std::string digest = {};
  friend bool operator==(const import_source&, const import_source&) = default;
};

/// What was imported and approved, as a file of the state folder keeps it under the key `import`.
struct import_record {
  mcp_host host = mcp_host::claude_code;
  bool linked = false;      ///< the files are read anew each time; else they were copied
  std::string home;         ///< of whoever imported
  std::string project = {}; ///< its folder; empty for the user's own files
  std::vector<import_source> files = {};             ///< later ones replace earlier ones' servers
  std::map<std::string, std::string> env_files = {}; ///< approved content of a project's env files
  friend bool operator==(const import_record&, const import_record&) = default;
};

nlohmann::json to_json(const import_record& record);

/// The record of a configuration file's document, if it has one. Errors: malformed.
expected<std::optional<import_record>> read_import_record(const nlohmann::json& document);

/// The name of the file that keeps an import, e.g. "imported-cursor.json"; those of projects are
/// told apart by their folder.
std::string import_file_name(mcp_host host, std::string_view project);

/// A project's files and environment files by their digests, in the entries that refer to them.
void bind_env_files(nlohmann::json& servers, const std::map<std::string, std::string>& digests);

} // namespace bulkhead
