#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/trusted_file.hpp"
#include "protocol/import_record.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

/// Reads the files that an import in `path` (a file of the state folder) links to: the user's own
/// as the account may trust them, a project's only with the content that was approved. What stands
/// against it is a problem, and then none of its servers count, or, where files couldn't be
/// understood, the others'.
config_file read_linked_files(const std::string& path, const import_record& record,
                              const trust& allowed, const environment_lookup& environment);

/// The command that approves a project's files anew.
std::string import_command(const import_record& record);

} // namespace bulkhead
