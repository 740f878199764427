#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

/// Who may have written what decides over servers and policy.
struct trust {
  uid_t account = 0;                      ///< whose files are taken, besides root's
  std::vector<std::string> guest_folders; ///< what lies in them is never taken
};

/// The text of a configuration file, provided that nobody but `who.account` and root can have
/// written it: a regular file that belongs to one of them, that neither others nor a group (but the
/// owner's private one) may write to, in a folder of which the same holds, and that doesn't lie
/// below a guest folder, wherever links lead. Never waits for the file. Errors, each with its
/// remedy: not_found, denied, unavailable, too_large (over `most` bytes).
expected<std::string> read_trusted_file(const std::string& path, std::size_t most,
                                        const trust& who);

/// The text of a regular file, whoever may have written it: for content that is compared with what
/// was approved, or shown before it is used. Errors: not_found, unavailable, too_large.
expected<std::string> read_any_file(const std::string& path, std::size_t most);

/// Is it one of the names that `list_trusted_folder` answers?
bool is_configuration_name(std::string_view name);

/// The paths of the `*.json` files (in any case) of a folder of which the same holds, sorted. None
/// when there is no folder. Errors like `read_trusted_file`.
expected<std::vector<std::string>> list_trusted_folder(const std::string& path, const trust& who);

/// What comes from an open descriptor of any kind until its end. Errors: unavailable, too_large
/// over `most` bytes; `what` names it.
expected<std::string> read_descriptor(int fd, const std::string& what, std::size_t most);

} // namespace bulkhead
