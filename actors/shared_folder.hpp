#pragma once

#include <cstdint>
#include <string>

#include "protocol/error.hpp"

namespace bulkhead {

/// What became of `share_folder`.
enum class sharing : std::uint8_t {
  done,
  unsupported, ///< the file system has no ACLs
};

/// Lets `guest` (a uid of this host) read, write and create in `folder` by ACL, and keeps the
/// account `owner` able to read and delete what the guest makes. Folders and files of the owner
/// that are there already are shared too, the first time (at most 10,000; links and what isn't the
/// owner's are left alone). Never follows a link that a guest may have left. Errors: unavailable,
/// with the path and the cause.
expected<sharing> share_folder(const std::string& folder, std::uint32_t owner, std::uint32_t guest);

/// Lets `guest` pass through the folders above `path` that are the account's and closed to others,
/// by ACL; it can't list them. Errors: unavailable, with the folder and the cause.
expected<void> let_through(const std::string& path, std::uint32_t owner, std::uint32_t guest);

} // namespace bulkhead
