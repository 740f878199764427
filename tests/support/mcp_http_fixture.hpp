#pragma once

#include "actors/mcp_http_link.hpp"
#include "tests/support/scripted_web.hpp"

#include "tests/support/mcp_client_fixture.hpp"

namespace bulkhead::testing {

/// A client of a scripted server over HTTP. `web->serve` gets what `methods` have no handler for.
struct http_client_fixture : client_fixture {
  using handler = std::function<void(const web_exchange&)>;

  http_client_fixture() {
    entry.url = "http://127.0.0.1:3000/mcp";
    entry.transport = server_transport::http;
    env->next_serial = [this] { return ++serial; };
    web->serve = [this](const web_exchange& exchange) { serve(exchange); };
    services.http = [this] { return web_host; };
    services.credentials = [] { return credential_store_actor{}; };
    web_host = sys.spawn(scripted_web, web);
  }

  ~http_client_fixture() override {
    caf::anon_send_exit(client, caf::exit_reason::kill);
    caf::anon_send_exit(web_host, caf::exit_reason::kill);
    consume_messages();
    web->opened.clear();
  }

  void serve(const web_exchange& exchange) {
    auto key = exchange.request.method == "POST" ? exchange.method() : exchange.request.method;
    if (auto found = handlers.find(key); found != handlers.end()) {
      found->second(exchange);
    } else if (exchange.request.method != "POST") {
      exchange.answer(405, "text/plain", "no");
    } else if (exchange.body().is_object() && exchange.body().contains("id")) {
      exchange.answer(400, "application/json",
                      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}})");
    } else {
      exchange.answer(202, "", "");
    }
  }

  static handler answers(json result) {
    return [result](const web_exchange& exchange) { exchange.result(result); };
  }

  static json tools() { return {{"tools", {{{"name", "echo"}, {"inputSchema", json::object()}}}}}; }

  /// A server of 2025-11-25 with sessions, whose ids count up.
  void be_legacy() {
    handlers["initialize"] = [this](const web_exchange& exchange) {
      session = "session-" + std::to_string(++sessions);
      exchange.result({{"protocolVersion", "2025-11-25"},
                       {"capabilities", {{"tools", json::object()}}},
                       {"serverInfo", {{"name", "scripted"}, {"version", "1"}}}},
                      {{"Mcp-Session-Id", session}});
    };
    handlers["tools/list"] = answers(tools());
    handlers["tools/call"] = [this](const web_exchange& exchange) {
      if (exchange.header("Mcp-Session-Id") != session) {
        exchange.answer(404, "text/plain", "Session not found");
      } else {
        exchange.result({{"content", json::array()}});
      }
    };
  }

  /// A server of 2026-07-28.
  void be_modern(const json& tool_capability = json::object()) {
    handlers["server/discover"] = answers({{"supportedVersions", {"2026-07-28"}},
                                           {"capabilities", {{"tools", tool_capability}}},
                                           {"resultType", "complete"}});
    handlers["tools/list"] = answers(tools());
    handlers["tools/call"] = answers({{"content", json::array()}, {"resultType", "complete"}});
  }

  void make_client() { client = sys.spawn(mcp_http_client, env, services, entry); }

  std::uint64_t serial = 0;
  std::map<std::string, handler> handlers;
  std::shared_ptr<web_script> web = std::make_shared<web_script>();
  http_host_actor web_host;
  mcp_http_services services;
  std::string session;
  int sessions = 0;
};

} // namespace bulkhead::testing
