#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "protocol/error.hpp"

namespace bulkhead {

/// Puts a file that only its owner can read, unless `mode` says otherwise, into `folder`, which is
/// made (0700) if need be: whole or not at all, in place of one of that name. Errors: unavailable.
expected<void> write_private_file(const std::string& folder, const std::string& name,
                                  std::string_view text, mode_t mode = 0600);

/// Makes a folder, and the one it lies in if need be, that nobody but the account may look into; of
/// one that is there, closes it to others. Errors: unavailable.
expected<void> make_private_folder(const std::string& path);

} // namespace bulkhead
