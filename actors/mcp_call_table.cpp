#include "actors/mcp_call_table.hpp"

namespace bulkhead {

expected<std::uint64_t> mcp_call_table::asking(clock::time_point now) {
  std::erase_if(abandoned_, [&](const auto& entry) { return entry.second <= now; });
  const upstream_call* oldest = nullptr;
  std::uint64_t id = 0;
  auto other = [&](const caf::actor_addr& caller) {
    return oldest != nullptr && caller != oldest->caller.address();
  };
  for (const auto& [each, call] : calls_) {
    if (!call.sent) {
      continue;
    }
    if (other(call.caller.address())) {
      return fail(errc::overloaded,
                  "calls of several runs are in progress, and it can't be told which "
                  "one asks; ask in one call at a time");
    }
    if (oldest == nullptr || *call.sent < *oldest->sent ||
        (*call.sent == *oldest->sent && each < id)) {
      oldest = &call;
      id = each;
    }
  }
  if (oldest == nullptr) {
    return fail(errc::closed, "no call is in progress in which it could be asked");
  }
  for (const auto& [caller, until] : abandoned_) {
    if (other(caller)) {
      return fail(errc::overloaded,
                  "a call of another run was given up a moment ago, and it can't be "
                  "told whether that one asks");
    }
  }
  return id;
}

} // namespace bulkhead
