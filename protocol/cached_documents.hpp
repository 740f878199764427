#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/server_config.hpp"
#include "protocol/tool_documents.hpp"

namespace bulkhead {

/// Bytes of a server's documents as they are kept from one start to the next; larger ones aren't.
inline constexpr std::size_t largest_cached_documents = 8 * mebibyte;

/// A hash of all that makes a server the one that it is: its name and how it is started or
/// reached. The same on every machine; a changed entry is another server.
std::uint64_t configuration_hash(const server_entry& entry);

/// The name of the file that keeps a server's documents.
std::string cached_documents_name(const server_entry& entry);

/// The file's text.
std::string encode_cached_documents(const server_documents& documents);

/// Reads such a text; name and alias are the entry's. Errors: malformed, too_large.
expected<server_documents> decode_cached_documents(std::string_view text,
                                                   const server_entry& entry);

} // namespace bulkhead
