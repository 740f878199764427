#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/wire.hpp"

namespace bulkhead {

/// The URIs of what runs leave:
///
///   bulkhead://output/HANDLE/stdout            all that was written to stdout (or stderr)
///   bulkhead://artifacts/HANDLE/NAME           an artifact; its name is percent-encoded
///   …?offset=N&length=N                        a range of bytes of either
struct resource_uri {
  std::string handle;              ///< 32 hex digits
  std::optional<stream_id> stream; ///< of an output
  std::string artifact;            ///< its name, decoded; empty for an output
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length; ///< as much as one read gives, when absent
  friend bool operator==(const resource_uri&, const resource_uri&) = default;
};

/// The templates (RFC 6570) of both.
inline constexpr std::string_view output_template =
    "bulkhead://output/{handle}/{stream}{?offset,length}";
inline constexpr std::string_view artifact_template =
    "bulkhead://artifacts/{handle}/{name}{?offset,length}";

std::string_view to_string(stream_id stream);

/// Is `text` 32 lower case hex digits?
bool is_handle(std::string_view text);

std::string output_uri(std::string_view handle, stream_id stream);
std::string artifact_uri(std::string_view handle, std::string_view name);

/// The file: URI of an absolute path (RFC 8089).
std::string file_uri(std::string_view path);

/// `uri`, which has no range, for what lies from `offset` on.
std::string uri_from(std::string_view uri, std::uint64_t offset);

/// Reads such a URI; nothing for any other, also when a range is no number below 2^53, a parameter
/// is unknown or comes twice, or the name is no artifact's.
std::optional<resource_uri> parse_resource_uri(std::string_view uri);

} // namespace bulkhead
