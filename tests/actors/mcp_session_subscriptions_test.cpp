#define CAF_SUITE mcp_session_subscriptions

#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(mcp_session_subscriptions_tests, session_fixture)

CAF_TEST(subscriptions are acknowledged and closed at the end) {
  ask_modern("s", "subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
  auto acks = notifications("notifications/subscriptions/acknowledged");
  CAF_REQUIRE_EQUAL(acks.size(), 1u);
  CAF_CHECK_EQUAL(acks[0]["_meta"]["io.modelcontextprotocol/subscriptionId"], json("s"));
  CAF_CHECK_EQUAL(acks[0]["notifications"], json::object());
  CAF_CHECK_EQUAL(answers("s"), 0u);
  ask_modern("s", "tools/list");
  CAF_CHECK_EQUAL(code("s"), -32600);
  ask_modern(2, "subscriptions/listen", {{"notifications", json::object()}});
  cancel(2);
  ask_modern(3, "subscriptions/listen");
  CAF_CHECK_EQUAL(code(3), -32602);
  auto stopped = stop();
  CAF_CHECK(*stopped);
  CAF_CHECK_EQUAL(result("s", "/resultType"), json("complete"));
  CAF_CHECK_EQUAL(result("s", "/_meta/io.modelcontextprotocol~1subscriptionId"), json("s"));
  CAF_CHECK_EQUAL(answers(2), 0u);
}

CAF_TEST(there is a bound on subscriptions) {
  for (int i = 0; i < 65; ++i) {
    ask_modern(i, "subscriptions/listen", {{"notifications", json::object()}});
  }
  CAF_CHECK_EQUAL(notifications("notifications/subscriptions/acknowledged").size(), 64u);
  CAF_CHECK_EQUAL(code(64), -32603);
}

CAF_TEST(a legacy client is told of changes once it is ready) {
  auto run_that_leaves = [&](int id) {
    call(id, "a");
    auto answer = success("a");
    answer.artifacts = {{"a", "text/plain", 1, "bulkhead://artifacts/x/a", "/f", {}}};
    finish(runs->size() - 1, answer);
    return notifications("notifications/resources/list_changed").size();
  };
  ask("init", "initialize", {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}});
  CAF_CHECK_EQUAL(run_that_leaves(1), 0u);
  say({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  CAF_CHECK_EQUAL(run_that_leaves(2), 1u);
  CAF_CHECK(written->requests.back().is_null());
  CAF_CHECK(!messages->back().contains("params"));
  call(3, "leaves nothing");
  finish(2, success("a"));
  CAF_CHECK_EQUAL(notifications("notifications/resources/list_changed").size(), 1u);
}

CAF_TEST(a legacy client is told of resources that it subscribed to) {
  const auto change = [&] {
    caf::anon_send(session, catalogue_atom::value);
    consume_messages();
    return notifications("notifications/resources/updated").size();
  };
  initialize();
  CAF_CHECK_EQUAL(change(), 0u);
  ask(1, "resources/subscribe", {{"uri", "bulkhead://capabilities"}});
  CAF_CHECK_EQUAL(result(1), json::object());
  CAF_CHECK_EQUAL(change(), 1u);
  auto update = notifications("notifications/resources/updated").back();
  CAF_CHECK_EQUAL(update, json({{"uri", "bulkhead://capabilities"}}));
  CAF_CHECK_EQUAL(notifications("notifications/resources/list_changed").size(), 2u);
  CAF_CHECK(written->requests.back().is_null());
  ask(2, "resources/unsubscribe", {{"uri", "bulkhead://capabilities"}});
  CAF_CHECK_EQUAL(result(2), json::object());
  CAF_CHECK_EQUAL(change(), 1u);
  ask(3, "resources/subscribe", {{"uri", "file:///etc/passwd"}});
  CAF_CHECK_EQUAL(code(3), -32002);
  ask(4, "resources/subscribe");
  CAF_CHECK_EQUAL(code(4), -32602);
  for (int i = 0; i < 65; ++i) {
    ask(5, "resources/subscribe",
        {{"uri", "bulkhead://output/0123456789abcdef0123456789abcdef/stdout?offset=" +
                     std::to_string(i)}});
  }
  CAF_CHECK_EQUAL(code(5), -32603);
}

CAF_TEST(modern subscriptions get what they asked for on their own way) {
  auto listen = [&](const json& id, const json& wanted) {
    ask_modern(id, "subscriptions/listen", {{"notifications", wanted}});
    return messages->back()["params"]["notifications"];
  };
  const json guide = json::array({"bulkhead://capabilities"});
  CAF_CHECK_EQUAL(listen("a", {{"resourcesListChanged", true}, {"toolsListChanged", true}}),
                  json({{"resourcesListChanged", true}}));
  CAF_CHECK_EQUAL(listen(0, {{"resourceSubscriptions", guide}}),
                  json({{"resourceSubscriptions", guide}}));
  CAF_CHECK_EQUAL(written->requests.back(), json(0));
  caf::anon_send(session, catalogue_atom::value);
  consume_messages();
  auto updates = notifications("notifications/resources/updated");
  CAF_REQUIRE_EQUAL(updates.size(), 1u);
  CAF_CHECK_EQUAL(updates[0]["_meta"]["io.modelcontextprotocol/subscriptionId"], json(0));
  CAF_CHECK_EQUAL(updates[0]["uri"], json("bulkhead://capabilities"));
  CAF_CHECK_EQUAL(written->requests[written->requests.size() - 2], json(0));
  messages->clear();
  ask_modern(1, "tools/call", {{"name", "run_python"}, {"arguments", {{"code", "1"}}}});
  auto answer = success("a");
  answer.out_kept.uri = "bulkhead://output/x/stdout";
  finish(0, answer);
  auto changes = notifications("notifications/resources/list_changed");
  CAF_REQUIRE_EQUAL(changes.size(), 1u);
  CAF_CHECK_EQUAL(changes[0]["_meta"]["io.modelcontextprotocol/subscriptionId"], json("a"));
  CAF_CHECK_EQUAL(written->requests.back(), json("a"));
  cancel(0);
  caf::anon_send(session, catalogue_atom::value);
  consume_messages();
  CAF_CHECK_EQUAL(notifications("notifications/resources/updated").size(), 0u);
}

CAF_TEST_FIXTURE_SCOPE_END()
