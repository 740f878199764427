#define CAF_SUITE mcp_http_link

#include "tests/support/mcp_http_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(mcp_http_link_tests, http_client_fixture)

CAF_TEST(a_modern_server_is_asked_with_the_headers_that_its_revision_wants) {
  be_modern();
  entry.headers = {{"Authorization", "Bearer configured-secret"}, {"X-Team", "blue"}};
  handlers["tools/list"] = answers(
      {{"tools",
        {{{"name", "naïve"},
          {"inputSchema",
           {{"type", "object"},
            {"properties", {{"region", {{"type", "string"}, {"x-mcp-header", "Region"}}}}}}}},
         {{"name", "broken"},
          {"inputSchema",
           {{"type", "object"},
            {"properties", {{"region", {{"type", "number"}, {"x-mcp-header", "Region"}}}}}}}}}}});
  make_client();
  auto listed = documents();
  CAF_REQUIRE(listed->value);
  CAF_REQUIRE_EQUAL((*listed->value)->tools.size(), 1u);
  auto called = call("naïve", R"({"region":" west"})");
  CAF_REQUIRE(called->value);
  auto asked = web->of("tools/call");
  CAF_REQUIRE_EQUAL(asked.size(), 1u);
  CAF_CHECK_EQUAL(asked[0].header("MCP-Protocol-Version"), "2026-07-28");
  CAF_CHECK_EQUAL(asked[0].header("Mcp-Method"), "tools/call");
  CAF_CHECK_EQUAL(asked[0].header("Mcp-Name"), "=?base64?bmHDr3Zl?=");
  CAF_CHECK_EQUAL(asked[0].header("Mcp-Param-Region"), "=?base64?IHdlc3Q=?=");
  CAF_CHECK_EQUAL(asked[0].header("Authorization"), "Bearer configured-secret");
  CAF_CHECK_EQUAL(asked[0].header("X-Team"), "blue");
  CAF_CHECK_EQUAL(asked[0].header("Mcp-Session-Id"), "");
  CAF_CHECK_EQUAL(asked[0].header("Accept"), "application/json, text/event-stream");
  CAF_CHECK_EQUAL(web->of("initialize").size(), 0u);
  CAF_CHECK_EQUAL(web->with("GET").size(), 0u);
}

CAF_TEST(a_legacy_server_is_met_in_a_session_that_is_ended) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  CAF_REQUIRE(call("echo")->value);
  CAF_REQUIRE_EQUAL(web->of("initialize").size(), 1u);
  CAF_CHECK_EQUAL(web->of("initialize")[0].header("MCP-Protocol-Version"), "");
  auto announced = web->of("notifications/initialized");
  CAF_REQUIRE_EQUAL(announced.size(), 1u);
  CAF_CHECK_EQUAL(announced[0].header("Mcp-Session-Id"), "session-1");
  CAF_CHECK_EQUAL(announced[0].header("MCP-Protocol-Version"), "2025-11-25");
  CAF_CHECK_EQUAL(web->with("GET").size(), 1u); // refused, and not asked for again
  pass(1min);
  CAF_CHECK_EQUAL(web->with("GET").size(), 1u);
  auto stopped = stop();
  pass(1s);
  CAF_CHECK(stopped->value);
  auto deleted = web->with("DELETE");
  CAF_REQUIRE_EQUAL(deleted.size(), 1u);
  CAF_CHECK_EQUAL(deleted[0].header("Mcp-Session-Id"), "session-1");
}

CAF_TEST(requests_wait_until_the_server_knows_that_the_client_is_ready) {
  be_legacy();
  handlers["notifications/initialized"] = [](const web_exchange&) {};
  make_client();
  auto listed = documents();
  CAF_CHECK_EQUAL(web->of("tools/list").size(), 0u);
  web->of("notifications/initialized")[0].answer(202, "", "");
  consume_messages();
  CAF_CHECK(listed->value);
}

CAF_TEST(an_ended_session_is_made_again_and_the_call_that_was_refused_is_made_in_it) {
  be_legacy();
  make_client();
  CAF_REQUIRE(call("echo")->value);
  session = "forgotten";
  auto first = call("echo");
  CAF_CHECK(first->value);
  CAF_CHECK_EQUAL(web->of("initialize").size(), 2u);
  CAF_CHECK_EQUAL(web->of("notifications/initialized").size(), 2u);
  auto calls = web->of("tools/call");
  CAF_REQUIRE_EQUAL(calls.size(), 3u);
  CAF_CHECK_EQUAL(calls[2].header("Mcp-Session-Id"), "session-2");
  // By 400, as some say it, and for ever.
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(
        400, "application/json",
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}})");
  };
  auto never = call("echo");
  CAF_CHECK(tells(never->failure, errc::server_failed, {"session twice"}));
}

CAF_TEST(a_session_that_can_not_be_made_again_ends_the_connection_and_the_next_call_begins_afresh) {
  be_legacy();
  make_client();
  CAF_REQUIRE(call("echo")->value);
  session = "forgotten";
  auto before = handlers["initialize"];
  handlers["initialize"] = [](const web_exchange& exchange) {
    exchange.answer(503, "text/plain", "starting");
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"refused another", "503"}));
  handlers["initialize"] = before;
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(a_connection_that_breaks_fails_its_call_at_once_and_repeats_nothing) {
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.end({errc::closed, "POST http://127.0.0.1:3000/mcp: the connection broke"});
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"broke", "isn't repeated"}));
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.end({errc::unavailable, "POST http://127.0.0.1:3000/mcp: Connection refused"});
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"Connection refused"}));
  pass(10s);
  CAF_CHECK_EQUAL(web->of("tools/call").size(), 2u);
  handlers["tools/call"] = answers({{"content", json::array()}});
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(a_server_that_is_not_there_uses_up_no_budget) {
  auto down = [](const web_exchange& exchange) {
    exchange.end({errc::unavailable, "POST http://127.0.0.1:3000/mcp: Connection refused"});
  };
  handlers["server/discover"] = down;
  make_client();
  for (int i = 0; i < 10; ++i) {
    CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"start MCP server", "refused"}));
    pass(1s);
  }
  be_modern();
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(an_answer_whose_stream_ends_is_resumed_where_it_broke_off) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  std::string answer;
  handlers["tools/call"] = [&](const web_exchange& exchange) {
    answer = exchange.response({{"content", json::array()}});
    exchange.events();
    exchange.bytes("id: e1\nretry: 500\ndata: \n\n");
    exchange.end();
  };
  handlers["GET"] = [&](const web_exchange& exchange) {
    exchange.events();
    exchange.event(answer, "e2");
    exchange.end();
  };
  auto called = call("echo");
  CAF_CHECK(called->pending());
  pass(490ms);
  CAF_CHECK_EQUAL(web->with("GET").size(), 1u); // the one that listens
  pass(20ms);
  CAF_CHECK(called->value);
  auto resumed = web->with("GET");
  CAF_REQUIRE_EQUAL(resumed.size(), 2u);
  CAF_CHECK_EQUAL(resumed[1].header("Last-Event-ID"), "e1");
  CAF_CHECK_EQUAL(resumed[1].header("Mcp-Session-Id"), "session-1");
  CAF_CHECK_EQUAL(web->of("tools/call").size(), 1u);
}

CAF_TEST(resuming_ends) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.event("", "e1");
    exchange.end();
  };
  handlers["GET"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.end();
  };
  auto called = call("echo");
  pass(10s);
  CAF_CHECK(tells(called->failure, errc::server_failed, {"5 attempts", "isn't repeated"}));
  // A server that has gone meanwhile is told at once.
  handlers["GET"] = [](const web_exchange& exchange) {
    exchange.end({errc::unavailable, "Connection refused"});
  };
  called = call("echo");
  pass(200ms);
  CAF_CHECK(tells(called->failure, errc::server_failed, {"can't be reached", "isn't repeated"}));
}

CAF_TEST(a_cancelled_call_is_dropped_and_the_server_learns_it_as_its_revision_has_it) {
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) { exchange.events(); };
  auto called = call("echo");
  cancel(last_call);
  CAF_CHECK(tells(called->failure, errc::cancelled, {}));
  CAF_CHECK(web->was_cancelled(web->of("tools/call")[0].id));
  CAF_CHECK_EQUAL(web->of("notifications/cancelled").size(), 0u);
}

CAF_TEST(a_cancelled_call_of_a_legacy_server_is_told_by_a_notification) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) { exchange.events(); };
  auto called = call("echo");
  cancel(last_call);
  auto told = web->of("notifications/cancelled");
  CAF_REQUIRE_EQUAL(told.size(), 1u);
  CAF_CHECK(told[0].body()["params"]["requestId"] == web->of("tools/call")[0].body()["id"]);
}

CAF_TEST(a_server_of_server_sent_events_is_found_when_it_knows_no_post) {
  std::optional<web_exchange> stream;
  auto no_post = [](const web_exchange& exchange) {
    exchange.answer(404, "text/html", "<html>Cannot POST /mcp</html>");
  };
  handlers["server/discover"] = no_post;
  handlers["GET"] = [&](const web_exchange& exchange) {
    stream = exchange;
    exchange.events();
    exchange.bytes("event: endpoint\ndata: /messages?session=1\n\n");
  };
  auto on_stream = [&](const json& result) {
    return [&stream, result](const web_exchange& exchange) {
      if (exchange.request.url != "http://127.0.0.1:3000/messages?session=1") {
        exchange.answer(404, "text/html", "<html>Cannot POST /mcp</html>");
        return;
      }
      stream->event(exchange.response(result));
      exchange.answer(202, "text/plain", "Accepted");
    };
  };
  handlers["initialize"] =
      on_stream({{"protocolVersion", "2024-11-05"}, {"capabilities", {{"tools", json::object()}}}});
  handlers["tools/list"] = on_stream(tools());
  handlers["tools/call"] = on_stream({{"content", json::array()}});
  make_client();
  CAF_REQUIRE(documents()->value);
  CAF_CHECK(call("echo")->value);
  CAF_CHECK_EQUAL(web->with("GET").size(), 1u);
  // Its stream is its session; with the next one it is met again.
  handlers["tools/call"] = [](const web_exchange& exchange) { exchange.answer(202, "", ""); };
  auto lost = call("echo");
  CAF_CHECK(lost->pending());
  stream->end({errc::closed, "the connection broke"});
  consume_messages();
  CAF_CHECK(tells(lost->failure, errc::server_failed, {"stream", "aren't repeated"}));
  handlers["tools/call"] = on_stream({{"content", json::array()}});
  CAF_CHECK(call("echo")->value);
  CAF_CHECK_EQUAL(web->with("GET").size(), 2u);
  CAF_CHECK_EQUAL(web->of("initialize").size(), 3u); // the first was by POST to /mcp
  // Gone for a while, it is found again as what it was.
  auto before = handlers["GET"];
  handlers["GET"] = [](const web_exchange& exchange) {
    exchange.end({errc::unavailable, "Connection refused"});
  };
  stream->end({errc::closed, "the connection broke"});
  consume_messages();
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"refused"}));
  handlers["GET"] = before;
  CAF_CHECK(call("echo")->value);
}

CAF_TEST(a_modern_server_that_is_slow_to_wake_up_is_asked_nothing_else) {
  be_modern();
  auto answer = handlers["server/discover"];
  handlers["server/discover"] = [](const web_exchange&) {};
  make_client();
  auto called = call("echo");
  pass(15s);
  answer(web->of("server/discover")[0]);
  consume_messages();
  CAF_CHECK(called->value);
  CAF_CHECK_EQUAL(web->of("initialize").size(), 0u);
}

CAF_TEST(a_server_that_leaves_the_first_question_open_is_asked_the_older_one) {
  be_legacy();
  handlers["server/discover"] = [](const web_exchange&) {};
  make_client();
  auto called = call("echo");
  pass(25s);
  CAF_CHECK(called->value);
}

CAF_TEST(a_server_that_answers_as_if_it_were_another_is_met_anew) {
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers.clear();
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(404, "text/html", "<html>gone</html>");
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"404"}));
  be_legacy();
  CAF_CHECK(call("echo")->value);
  CAF_CHECK_EQUAL(web->of("initialize").size(), 1u);
}

CAF_TEST(messages_are_sent_to_no_other_server) {
  entry.transport = server_transport::sse;
  handlers["GET"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.bytes("event: endpoint\ndata: http://127.0.0.1:4000/messages\n\n");
  };
  make_client();
  CAF_CHECK(tells(documents()->failure, errc::denied, {"http://127.0.0.1:4000", "another server"}));
  CAF_CHECK_EQUAL(web->with("POST").size(), 0u);
}

CAF_TEST(a_server_that_speaks_nothing_known_is_told) {
  handlers["server/discover"] = handlers["initialize"] = [](const web_exchange& exchange) {
    exchange.answer(404, "text/html", "<html>nothing here</html>");
  };
  make_client();
  CAF_CHECK(tells(documents()->failure, errc::server_failed,
                  {"start MCP server \"srv\"", "neither", "HTTP 405"}));
}

CAF_TEST(who_is_not_let_in_learns_what_to_do) {
  handlers["server/discover"] = [](const web_exchange& exchange) {
    exchange.answer(401, "application/json", "{}", {{"WWW-Authenticate", "Bearer"}});
  };
  make_client();
  CAF_CHECK(tells(documents()->failure, errc::denied,
                  {"\"srv\"", "401", "Authorization", "servers.json"}));
}

CAF_TEST(messages_of_the_listening_stream_reach_the_client) {
  be_legacy();
  std::optional<web_exchange> stream;
  handlers["GET"] = [&](const web_exchange& exchange) {
    stream = exchange;
    exchange.events();
  };
  make_client();
  CAF_REQUIRE(documents()->value);
  CAF_REQUIRE(documents()->value);
  CAF_CHECK_EQUAL(web->of("tools/list").size(), 1u);
  stream->event(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})", "l1");
  consume_messages();
  CAF_REQUIRE(documents()->value);
  CAF_CHECK_EQUAL(web->of("tools/list").size(), 2u);
  // A ping is answered by a POST.
  stream->event(R"({"jsonrpc":"2.0","id":"p","method":"ping"})");
  consume_messages();
  auto last = web->opened.back().body();
  CAF_CHECK_EQUAL(last["id"], "p");
  // A stream that ends is asked for again, from where it was.
  stream->end();
  pass(4s);
  auto streams = web->with("GET");
  CAF_REQUIRE_EQUAL(streams.size(), 2u);
  CAF_CHECK_EQUAL(streams[1].header("Last-Event-ID"), "l1");
}

CAF_TEST(a_modern_server_is_listened_to_where_it_says_that_its_tools_change) {
  be_modern({{"listChanged", true}});
  handlers["subscriptions/listen"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.event(
        R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}})");
  };
  make_client();
  CAF_REQUIRE(documents()->value);
  auto listening = web->of("subscriptions/listen");
  CAF_REQUIRE_EQUAL(listening.size(), 1u);
  auto params = listening[0].body()["params"];
  CAF_CHECK_EQUAL(params["notifications"]["toolsListChanged"], true);
  CAF_CHECK_EQUAL(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  listening[0].event(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  consume_messages();
  CAF_REQUIRE(documents()->value);
  CAF_CHECK_EQUAL(web->of("tools/list").size(), 2u);
}

CAF_TEST(credit_is_given_back_for_what_is_dealt_with) {
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.event(exchange.response(
        {{"content", json::array()}, {"structuredContent", std::string(300'000, 'x')}}));
    exchange.end();
  };
  auto called = call("echo");
  CAF_REQUIRE(called->value);
  CAF_CHECK_GREATER(web->credit[web->of("tools/call")[0].id], 300'000u);
}

CAF_TEST(answers_over_the_limits_are_refused) {
  env->bounds.tool_payload = 1000;
  env->bounds.line = 2000;
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.result({{"content", std::string(3000, 'x')}});
  };
  CAF_CHECK(tells(call("echo")->failure, errc::too_large, {"limit"}));
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.event(exchange.response({{"content", std::string(3000, 'x')}}));
  };
  CAF_CHECK(tells(call("echo")->failure, errc::too_large, {"limit"}));
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(200, "application/json", "{not json");
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"can't be read"}));
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(200, "text/html", "<html>a page</html>");
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"without a response"}));
}

CAF_TEST(an_error_that_names_no_request_is_of_the_call_on_whose_stream_it_comes) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.bytes("data: {\"jsonrpc\":\"2.0\",\"id\":null,"
                   "\"error\":{\"code\":-32603,\"message\":\"out of order\"}}\n\n");
  };
  CAF_CHECK(tells(call("echo")->failure, errc::server_failed, {"out of order"}));
}

CAF_TEST(a_server_is_not_asked_for_the_rest_without_a_pause) {
  be_legacy();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.events();
    exchange.bytes("id: e1\nretry: 0\ndata: \n\n");
    exchange.end();
  };
  auto called = call("echo");
  pass(90ms);
  CAF_CHECK_EQUAL(web->with("GET").size(), 1u); // the one that listens
  pass(20ms);
  CAF_CHECK_EQUAL(web->with("GET").size(), 2u);
}

CAF_TEST(a_lost_http_host_fails_what_was_on_its_way_and_the_next_one_is_used) {
  be_modern();
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange&) {};
  auto called = call("echo");
  caf::anon_send_exit(web_host, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(tells(called->failure, errc::server_failed, {"failed"}));
  web_host = sys.spawn(scripted_web, web);
  handlers["tools/call"] = answers({{"content", json::array()}});
  CAF_CHECK(call("echo")->value);
}

CAF_TEST_FIXTURE_SCOPE_END()
