#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "actors/unique_descriptor.hpp"
#include "protocol/error.hpp"

namespace bulkhead {

/// What stands beside a stored file.
struct about_file {
  std::string owner;
  std::string name; ///< an artifact's; empty for a stream
  std::string mime_type;
  std::uint64_t total = 0; ///< a stream's bytes, kept or not
  std::string why;         ///< why not all of a stream is kept
};

/// Bytes of a stream's description, padded: so it can be written when the disk is full.
inline constexpr std::size_t stream_about_size = 512;

std::string encode_about(const about_file& about);

/// Reads `NAME.json` in a folder; nothing when there is none, or it is blank or damaged.
std::optional<about_file> read_about(int folder, const std::string& file);

/// Is it the description of a stored file?
bool is_about(std::string_view name);

/// Makes a new file for us alone.
expected<unique_descriptor> make_file(int folder, const std::string& name);

/// Writes from `offset` on; the bytes written, and into `cause` the errno that ended it early.
std::size_t write_at(int fd, std::string_view bytes, std::uint64_t offset, int& cause);

/// Opens a folder in a folder, never through a link.
unique_descriptor open_folder(int above, const std::string& name);

/// Calls `each` with the name of everything in the folder but "." and "..".
void for_each_entry(int folder, const std::function<void(const std::string& name)>& each);

/// Bytes of a file; 0 when it can't be told.
std::uint64_t size_of(int folder, const std::string& name);

} // namespace bulkhead
