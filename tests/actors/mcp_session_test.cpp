#define CAF_SUITE mcp_session

#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(mcp_session_tests, session_fixture)

CAF_TEST(every legacy revision is echoed and an unknown one gets the latest) {
  for (const auto* revision :
       {"2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    initialize(revision);
    CAF_CHECK_EQUAL(result("init", "/protocolVersion"), json(revision));
  }
  initialize("1987-01-01");
  CAF_CHECK_EQUAL(result("init", "/protocolVersion"), json("2025-11-25"));
}

CAF_TEST(initialize without a version is refused) {
  ask(1, "initialize");
  CAF_CHECK_EQUAL(code(1), -32602);
}

CAF_TEST(ids keep value and type) {
  initialize();
  for (const auto& id : {json(0), json("0"), json("a\"\n"), json(-7), json(9007199254740993)}) {
    ask(id, "ping");
    CAF_CHECK_EQUAL(answer(id, "/result"), json::object());
  }
}

CAF_TEST(lists in the legacy era) {
  initialize();
  ask(1, "tools/list");
  CAF_REQUIRE_EQUAL(result(1)["tools"].size(), 1u);
  CAF_CHECK_EQUAL(result(1, "/tools/0/name"), json("run_python"));
  CAF_CHECK(!result(1).contains("resultType"));
  ask(2, "resources/list");
  CAF_CHECK_EQUAL(result(2, "/resources/0/uri"), json("bulkhead://capabilities"));
  ask(3, "resources/templates/list");
  CAF_CHECK_EQUAL(result(3, "/resourceTemplates").size(), 2u);
  ask(4, "prompts/list");
  CAF_CHECK_EQUAL(result(4, "/prompts/0/name"), json("use-bulkhead"));
}

CAF_TEST(a cursor that was never given is refused) {
  left->list.refuse_with(errc::invalid_argument, "Invalid cursor");
  initialize();
  for (const auto* method :
       {"tools/list", "resources/list", "resources/templates/list", "prompts/list"}) {
    ask(1, method, {{"cursor", "x"}});
    CAF_CHECK_EQUAL(code(1), -32602);
  }
}

CAF_TEST(a client that just asks is served) {
  ask(0, "tools/list");
  CAF_CHECK_EQUAL(result(0)["tools"].size(), 1u);
  call(1, "print(1)");
  finish(0, success("1\n"));
  CAF_CHECK_EQUAL(result(1, "/structuredContent/status"), json("success"));
}

CAF_TEST(the resource is read in both eras) {
  initialize();
  ask(1, "resources/read", {{"uri", "bulkhead://capabilities"}});
  auto text = result(1, "/contents/0")["text"].get<std::string>();
  CAF_CHECK(text.find("mcp.runtime") != std::string::npos ||
            text.find("runtime") != std::string::npos);
  CAF_CHECK(text.find("`memory`") != std::string::npos);
  CAF_CHECK(text.find("vault") == std::string::npos);
  ask(2, "resources/read", {{"uri", "file:///etc/passwd"}});
  CAF_CHECK_EQUAL(code(2), -32002);
  ask(3, "resources/read");
  CAF_CHECK_EQUAL(code(3), -32602);
  ask_modern(4, "resources/read", {{"uri", "bulkhead://capabilities"}});
  CAF_CHECK_EQUAL(result(4, "/contents/0/text"), json(text));
  CAF_CHECK_EQUAL(result(4, "/cacheScope"), json("private"));
  ask_modern(5, "resources/read", {{"uri", "bulkhead://nothing"}});
  CAF_CHECK_EQUAL(code(5), -32602);
}

CAF_TEST(unknown methods are refused in both eras and unknown notifications ignored) {
  initialize();
  ask(1, "no/such");
  CAF_CHECK_EQUAL(code(1), -32601);
  ask(2, "tasks/list");
  CAF_CHECK_EQUAL(code(2), -32601);
  ask_modern(3, "no/such");
  CAF_CHECK_EQUAL(code(3), -32601);
  auto before = messages->size();
  say({{"jsonrpc", "2.0"}, {"method", "notifications/no/such"}});
  say({{"jsonrpc", "2.0"}, {"id", 9}, {"result", json::object()}});
  CAF_CHECK_EQUAL(messages->size(), before);
}

CAF_TEST(what the modern era removed is unknown there) {
  for (const auto* method : {"ping", "logging/setLevel", "initialize", "resources/subscribe",
                             "resources/unsubscribe", "notifications/roots/list_changed"}) {
    ask_modern(1, method, {{"level", "info"}, {"protocolVersion", "2025-11-25"}});
    CAF_CHECK_EQUAL(code(1), -32601);
  }
}

CAF_TEST(what only the modern era has is unknown in the legacy one) {
  initialize();
  ask(1, "server/discover");
  CAF_CHECK_EQUAL(code(1), -32602);
  ask(2, "subscriptions/listen", {{"notifications", json::object()}});
  CAF_CHECK_EQUAL(code(2), -32602);
}

CAF_TEST(discover and lists in the modern era) {
  ask_modern("d", "server/discover");
  CAF_CHECK_EQUAL(result("d", "/supportedVersions"), json::array({"2026-07-28"}));
  for (const auto* method :
       {"tools/list", "resources/list", "resources/templates/list", "prompts/list"}) {
    ask_modern(1, method);
    CAF_CHECK_EQUAL(result(1, "/resultType"), json("complete"));
    CAF_CHECK(result(1, "/ttlMs").is_number_unsigned());
    // What runs left is their owner's alone.
    bool own = method == std::string{"resources/list"};
    CAF_CHECK_EQUAL(result(1, "/cacheScope"), json(own ? "private" : "public"));
  }
}

CAF_TEST(modern requests are checked one by one) {
  ask_modern(1, "server/discover");
  ask(2, "tools/list");
  CAF_CHECK_EQUAL(code(2), -32602);
  ask(3, "tools/list", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}}}});
  CAF_CHECK_EQUAL(code(3), -32602);
  ask(4, "tools/call",
      {{"_meta",
        {{"io.modelcontextprotocol/protocolVersion", "2030-01-01"},
         {"io.modelcontextprotocol/clientCapabilities", json::object()}}},
       {"name", "run_python"}});
  CAF_CHECK_EQUAL(code(4), -32022);
  CAF_CHECK_EQUAL(answer(4, "/error/data/supported"), json::array({"2026-07-28"}));
  CAF_CHECK_EQUAL(answer(4, "/error/data/requested"), json("2030-01-01"));
  CAF_CHECK(runs->empty());
}

CAF_TEST(a client that probed may still fall back to initialize) {
  ask_modern(1, "server/discover");
  initialize("2025-06-18");
  ask(2, "tools/list");
  CAF_CHECK_EQUAL(result(2)["tools"].size(), 1u);
  ask_modern(3, "tools/list");
  CAF_CHECK_EQUAL(result(3, "/resultType"), json("complete"));
}

CAF_TEST(garbage gets an error and the session goes on) {
  initialize();
  for (const auto* text : {"garbage", "{\"jsonrpc\":\"2.0\"", "\xff\xfe", "{]"}) {
    say_text(text);
    CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32700));
    CAF_CHECK(messages->back()["id"].is_null());
  }
  say_text(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])");
  CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32600));
  CAF_CHECK(messages->back()["error"]["message"].get<std::string>().find("batch") !=
            std::string::npos);
  say_text(R"({"jsonrpc":"1.0","id":5,"method":"ping"})");
  CAF_CHECK_EQUAL(code(5), -32600);
  ask(6, "tools/list", json::array({1}));
  CAF_CHECK_EQUAL(code(6), -32602);
  auto before = messages->size();
  say_text("");
  say_text("  \r");
  CAF_CHECK_EQUAL(messages->size(), before);
  ask(7, "ping");
  CAF_CHECK_EQUAL(answer(7, "/result"), json::object());
}

CAF_TEST(a message that was too long is reported) {
  caf::anon_send(session, refuse_atom::value, error{errc::too_large, "over the limit"});
  consume_messages();
  CAF_CHECK_EQUAL(messages->back()["error"]["code"], json(-32600));
  CAF_CHECK(messages->back()["id"].is_null());
}

CAF_TEST_FIXTURE_SCOPE_END()
