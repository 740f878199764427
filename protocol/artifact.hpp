#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resource_uri.hpp"

namespace bulkhead {

/// What code makes for its client besides its output (`save_file`, `save_image`, `display`), and
/// what is kept of both.

/// Bytes of an artifact's name and of its media type.
inline constexpr std::size_t artifact_name_limit = 255;
inline constexpr std::size_t mime_type_limit = 127;

/// May `name` name an artifact? 1 to 255 bytes of valid UTF-8 without "/" and control characters
/// (C0, DEL, C1), not "." and "..". It is shown to people and never a path on the host.
bool is_artifact_name(std::string_view name);

/// Is `text` a media type (RFC 6838, section 4.2) of at most 127 bytes, with no parameter but
/// `; charset=utf-8`?
bool is_mime_type(std::string_view text);

/// Can clients show these bytes as an image? PNG, JPEG, GIF and WebP, told by their first bytes,
/// which the media type must agree with.
bool is_shown_image(std::string_view mime_type, std::string_view bytes);

/// Whose things are kept, and under which name: 128 random bits as 32 hex digits, which is all that
/// one has to know to ask for them.
struct stored_run {
  std::string handle;
  std::string owner;
  friend bool operator==(const stored_run&, const stored_run&) = default;
};

/// What of a stream is kept: its first `bytes` bytes. `why` tells why no more is; empty when all
/// is.
struct kept_bytes {
  std::uint64_t bytes = 0;
  std::string file; ///< its path on the host; empty when nothing is kept
  std::string why;
  friend bool operator==(const kept_bytes&, const kept_bytes&) = default;
};

/// An artifact as an answer tells of it.
struct kept_artifact {
  std::string name;
  std::string mime_type;
  std::uint64_t bytes = 0;
  std::string uri;
  std::string file;  ///< its path on the host
  std::string image; ///< its bytes, where the answer shows it as an image
  friend bool operator==(const kept_artifact&, const kept_artifact&) = default;
};

/// Artifacts that aren't kept, by cause.
struct lost_artifacts {
  std::uint64_t count = 0;
  std::string why;
  friend bool operator==(const lost_artifacts&, const lost_artifacts&) = default;
};

/// Bytes of a stored thing that somebody wants.
struct resource_range {
  std::string owner;
  resource_uri what;
  friend bool operator==(const resource_range&, const resource_range&) = default;
};

/// Those bytes, and the rest of what is known.
struct resource_part {
  std::string bytes;       ///< begin at the offset that was asked for
  std::uint64_t kept = 0;  ///< bytes that can be read in all
  std::uint64_t total = 0; ///< bytes there were; more than `kept` when something cut it
  std::string mime_type;
  std::string why; ///< what cut it
  friend bool operator==(const resource_part&, const resource_part&) = default;
};

/// A stored thing in a list.
struct resource_entry {
  std::string uri;
  std::string name;
  std::string mime_type;
  std::uint64_t bytes = 0;
  friend bool operator==(const resource_entry&, const resource_entry&) = default;
};

struct resource_page {
  std::vector<resource_entry> entries;
  std::string next; ///< the cursor of the next page; empty on the last
  friend bool operator==(const resource_page&, const resource_page&) = default;
};

template <class Inspector>
auto inspect(Inspector& f, stored_run& x) {
  return f(x.handle, x.owner);
}
template <class Inspector>
auto inspect(Inspector& f, kept_bytes& x) {
  return f(x.bytes, x.file, x.why);
}
template <class Inspector>
auto inspect(Inspector& f, resource_part& x) {
  return f(x.bytes, x.kept, x.total, x.mime_type, x.why);
}
template <class Inspector>
auto inspect(Inspector& f, resource_entry& x) {
  return f(x.uri, x.name, x.mime_type, x.bytes);
}
template <class Inspector>
auto inspect(Inspector& f, resource_page& x) {
  return f(x.entries, x.next);
}

} // namespace bulkhead
