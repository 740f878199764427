#include "protocol/subscriptions.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

tl::expected<subscription, rpc_refusal> read(const json& notifications,
                                             const changing_lists& offered = {}) {
  static std::string text;
  text = json{{"notifications", notifications}}.dump();
  mcp_request request;
  request.params = outline_of_part(text);
  return read_subscription(request, offered);
}

const json everything = {{"toolsListChanged", true},
                         {"promptsListChanged", true},
                         {"resourcesListChanged", true},
                         {"resourceSubscriptions", {"bulkhead://capabilities", "file:///x"}}};

TEST(subscriptions, only_what_can_change_is_honoured) {
  auto honoured = read(everything);
  ASSERT_TRUE(honoured);
  EXPECT_EQ(json::parse(subscription_ack_params("7", *honoured)),
            json::parse(R"({"_meta":{"io.modelcontextprotocol/subscriptionId":7},)"
                        R"("notifications":{"resourcesListChanged":true,)"
                        R"("resourceSubscriptions":["bulkhead://capabilities"]}})"));
  honoured = read(everything, {true, true, true});
  auto all = json::parse(subscription_ack_params(R"("a")", *honoured));
  EXPECT_EQ(all["_meta"]["io.modelcontextprotocol/subscriptionId"], "a");
  EXPECT_EQ(all["notifications"]["toolsListChanged"], true);
  EXPECT_EQ(all["notifications"]["promptsListChanged"], true);
}

TEST(subscriptions, nothing_is_told_that_was_not_asked_for) {
  auto honoured =
      read({{"toolsListChanged", false}, {"resourcesListChanged", 1}}, {true, true, true});
  ASSERT_TRUE(honoured);
  EXPECT_EQ(json::parse(subscription_ack_params("0", *honoured))["notifications"], json::object());
}

TEST(subscriptions, what_is_no_filter_is_refused) {
  json many = json::array();
  for (std::size_t i = 0; i <= most_subscribed; ++i) {
    many.push_back("bulkhead://capabilities");
  }
  for (const auto& bad :
       {json(nullptr), json::array(), json("x"), json{{"resourceSubscriptions", "x"}},
        json{{"resourceSubscriptions", {1}}}, json{{"resourceSubscriptions", many}}}) {
    auto refused = read(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, rpc_code::invalid_params);
  }
}

TEST(subscriptions, what_may_be_subscribed_to) {
  const std::string handle(32, 'a');
  EXPECT_TRUE(is_subscribable("bulkhead://capabilities"));
  EXPECT_TRUE(is_subscribable("bulkhead://output/" + handle + "/stdout"));
  EXPECT_FALSE(is_subscribable("bulkhead://other"));
  EXPECT_FALSE(is_subscribable(""));
}

TEST(subscriptions, changes_in_both_eras) {
  EXPECT_EQ(change_params({}), "");
  EXPECT_EQ(change_params({}, "a://b"), R"({"uri":"a://b"})");
  EXPECT_EQ(change_params("\"s\""), R"({"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}})");
  EXPECT_EQ(json::parse(change_params("0", "a://b")),
            json::parse(R"({"_meta":{"io.modelcontextprotocol/subscriptionId":0},"uri":"a://b"})"));
}

} // namespace
} // namespace bulkhead
