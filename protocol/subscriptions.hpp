#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "protocol/mcp_request.hpp"
#include "protocol/mcp_server.hpp"

namespace bulkhead {

/// What a client wants to be told of. In the modern era a request, `subscriptions/listen`, says so
/// and stays open; in the legacy era list changes are told anyway, and resources one by one.
struct subscription {
  changing_lists lists{false, false, false};
  std::vector<std::string> resources; ///< URIs
};

/// Resources that one subscription, or one client of the legacy era, may name.
inline constexpr std::size_t most_subscribed = 64;

/// May a client subscribe to this resource? The guide changes with the configured servers; what a
/// run leaves can be subscribed to, though it changes no more.
bool is_subscribable(std::string_view uri);

/// Reads what of a `subscriptions/listen` is honoured: the lists that can change (`offered`) and
/// the resources that there may be. Refuses (-32602) what is no filter, or names too many.
tl::expected<subscription, rpc_refusal> read_subscription(const mcp_request& request,
                                                          const changing_lists& offered);

/// The parameters of `notifications/subscriptions/acknowledged`; `id` is JSON text.
std::string subscription_ack_params(std::string_view id, const subscription& honoured);

/// The parameters of a notification on the subscription `id` (JSON text; empty: none, legacy era):
/// `uri` is that of a resource that changed; empty for a list. Empty if there is nothing to say.
std::string change_params(std::string_view id, std::string_view uri = {});

} // namespace bulkhead
