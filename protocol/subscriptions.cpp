#include "protocol/subscriptions.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"
#include "protocol/resource_uri.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

namespace {

tl::unexpected<rpc_refusal> refuse(std::string message) {
  return tl::unexpected<rpc_refusal>(
      {rpc_code::invalid_params, "subscriptions/listen: " + std::move(message), {}});
}

} // namespace

bool is_subscribable(std::string_view uri) {
  return uri == capabilities_uri || uri == output_schema_uri || parse_resource_uri(uri).has_value();
}

tl::expected<subscription, rpc_refusal> read_subscription(const mcp_request& request,
                                                          const changing_lists& offered) {
  auto filter = nlohmann::json::parse(request.find("notifications"), nullptr, false);
  if (!filter.is_object()) {
    return refuse("notifications must be an object");
  }
  subscription result;
  auto wants = [&](const char* name) { return filter.value(name, nlohmann::json()) == true; };
  result.lists.tools = offered.tools && wants("toolsListChanged");
  result.lists.prompts = offered.prompts && wants("promptsListChanged");
  result.lists.resources = offered.resources && wants("resourcesListChanged");
  auto resources = filter.value("resourceSubscriptions", nlohmann::json());
  if (resources.is_null()) {
    return result;
  }
  if (!resources.is_array() || resources.size() > most_subscribed) {
    return refuse(
        fmt::format("resourceSubscriptions must be an array of at most {} URIs", most_subscribed));
  }
  for (const auto& each : resources) {
    if (!each.is_string()) {
      return refuse("resourceSubscriptions must be an array of URIs");
    }
    if (const auto& uri = each.get_ref<const std::string&>(); is_subscribable(uri)) {
      result.resources.push_back(uri);
    }
  }
  return result;
}

std::string subscription_ack_params(std::string_view id, const subscription& honoured) {
  std::string members;
  auto add = [&](bool yes, std::string_view member) {
    if (yes) {
      members += members.empty() ? "" : ",";
      members += member;
    }
  };
  add(honoured.lists.prompts, R"("promptsListChanged":true)");
  add(honoured.lists.resources, R"("resourcesListChanged":true)");
  add(honoured.lists.tools, R"("toolsListChanged":true)");
  std::string uris;
  for (const auto& uri : honoured.resources) {
    uris += uris.empty() ? "" : ",";
    append_json_string(uris, uri);
  }
  add(!uris.empty(), fmt::format(R"("resourceSubscriptions":[{}])", uris));
  return fmt::format(R"({{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},)"
                     R"("notifications":{{{}}}}})",
                     id, members);
}

std::string change_params(std::string_view id, std::string_view uri) {
  std::string members;
  if (!id.empty()) {
    members = fmt::format(R"("_meta":{{"io.modelcontextprotocol/subscriptionId":{}}})", id);
  }
  if (!uri.empty()) {
    members += members.empty() ? "" : ",";
    members += R"("uri":)" + json_quote(uri);
  }
  return members.empty() ? members : "{" + members + "}";
}

} // namespace bulkhead
