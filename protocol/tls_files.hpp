#pragma once

#include <string>

namespace bulkhead {

/// Where a server's certificate is: absolute paths, in PEM.
struct tls_files {
  std::string certificate; ///< its own first, then those between it and the root
  std::string key;         ///< not encrypted

  friend bool operator==(const tls_files&, const tls_files&) = default;
};

} // namespace bulkhead
