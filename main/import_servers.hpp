#pragma once

#include <string>
#include <vector>

#include "main/account.hpp"
#include "main/command_line.hpp"
#include "protocol/import_record.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// A host's files, read as whoever started us: root may read its own, the account it becomes may
/// not.
struct collected_import {
  import_record record;
  std::vector<host_file> files;
  host_servers servers;
  bool from_input = false; ///< the file came from standard input
};

/// Finds and reads what `servers import` is to take over. `in` is standard input. Errors: not_found
/// (no file, no folder), invalid_argument, too_large.
expected<collected_import> collect_import(const command_line& line, int in);

/// `servers import`: shows what it takes over, asks, and writes it into the state folder. 0 when it
/// is written (or would be, with --dry-run), 1 when it isn't.
int import_servers(const collected_import& collected, const command_line& line,
                   const settings& config, const account& who, const std::string& executable,
                   int in, int out);

} // namespace bulkhead
