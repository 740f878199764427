#pragma once

#include <string>

#include "protocol/mcp_request.hpp"

namespace bulkhead {

/// Who a client says it is; not to be relied upon.
struct client_info {
  std::string name;
  std::string version;
  friend bool operator==(const client_info&, const client_info&) = default;
};

/// What a request tells of its client: `clientInfo` of `initialize`, or that of `_meta`
/// (2026-07-28). Empty where it tells nothing; cut to 128 bytes each.
client_info read_client_info(const mcp_request& request);

} // namespace bulkhead
