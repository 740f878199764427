// What clients want to be told of: lists and resources that change.

#include "actors/mcp_session.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/json_rpc.hpp"

namespace bulkhead {

namespace {

/// Subscriptions that one client may hold open; each costs its filter.
constexpr std::size_t most_subscriptions = 64;

std::string_view change_of(bool changing_lists::*list) {
  if (list == &changing_lists::tools) {
    return "notifications/tools/list_changed";
  }
  return list == &changing_lists::prompts ? "notifications/prompts/list_changed"
                                          : "notifications/resources/list_changed";
}

} // namespace

void mcp_session_state::listen(const rpc_message& message, const mcp_request& request) {
  auto honoured = read_subscription(request, lists);
  if (!honoured) {
    refuse(message.id, honoured.error());
  } else if (subscriptions.size() >= most_subscriptions) {
    refuse(message.id, {rpc_code::internal_error,
                        fmt::format("subscriptions/listen: {} subscriptions are open already; "
                                    "cancel one first",
                                    most_subscriptions),
                        {}});
  } else {
    write_for(message.id, encode_notification("notifications/subscriptions/acknowledged",
                                              subscription_ack_params(message.id, *honoured)));
    subscriptions.emplace(message.id, std::move(*honoured));
  }
}

/// `resources/subscribe` and its opposite, of the legacy era.
void mcp_session_state::subscribe(const rpc_message& message, const mcp_request& request,
                                  bool yes) {
  auto uri = request.text("uri");
  auto form = form_for(request);
  if (!uri) {
    refuse(message.id, {rpc_code::invalid_params, message.method + ": uri must be a string", {}});
    return;
  }
  if (!yes) {
    subscribed.erase(*uri);
  } else if (!is_subscribable(*uri)) {
    refuse(message.id, resource_not_found(*uri, form));
    return;
  } else if (subscribed.size() >= most_subscribed) {
    refuse(message.id, {rpc_code::internal_error,
                        fmt::format("resources/subscribe: {} resources are subscribed to already; "
                                    "unsubscribe from one first",
                                    most_subscribed),
                        {}});
    return;
  } else {
    subscribed.insert(std::move(*uri));
  }
  respond(message.id, empty_result(form));
}

void mcp_session_state::tell_changed(bool changing_lists::*list) {
  if (now != phase::open || !(lists.*list)) {
    return;
  }
  for (const auto& [id, wanted] : subscriptions) {
    if (wanted.lists.*list) {
      write_for(id, encode_notification(change_of(list), change_params(id)));
    }
  }
  if (ready) {
    write(encode_notification(change_of(list), {}));
  }
}

void mcp_session_state::tell_updated(const std::string& uri) {
  if (now != phase::open) {
    return;
  }
  constexpr std::string_view updated = "notifications/resources/updated";
  for (const auto& [id, wanted] : subscriptions) {
    const auto& uris = wanted.resources;
    if (std::find(uris.begin(), uris.end(), uri) != uris.end()) {
      write_for(id, encode_notification(updated, change_params(id, uri)));
    }
  }
  if (subscribed.count(uri) > 0) {
    write(encode_notification(updated, change_params({}, uri)));
  }
}

} // namespace bulkhead
