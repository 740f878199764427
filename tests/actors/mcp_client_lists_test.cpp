#define CAF_SUITE mcp_client_lists

#include "tests/support/mcp_client_fixture.hpp"

/// Tool documents.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct list_fixture : client_fixture {
  /// Lets the server answer page after page; `page` gets the cursor ("" for the first one).
  void serve(std::function<json(const std::string& cursor)> page) {
    server["tools/list"] = [this, page](const auto& child, const auto& request) {
      ++requests;
      answer(child, request, page(request["params"].value("cursor", "")));
    };
  }

  int requests = 0;
};

json tool(const std::string& name) {
  return {{"name", name}, {"inputSchema", {{"type", "object"}}}};
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_client_lists_tests, list_fixture)

CAF_TEST(documents_start_the_server_and_are_kept) {
  serve([](const std::string&) { return json{{"tools", {tool("read-file")}}}; });
  entry.alias = "srv_alias";
  make_client();
  auto result = documents();
  CAF_REQUIRE(result->value);
  const auto& found = **result->value;
  CAF_CHECK_EQUAL(found.server, "srv");
  CAF_CHECK_EQUAL(found.alias, "srv_alias");
  CAF_CHECK_EQUAL(found.description, "A title");
  CAF_REQUIRE_EQUAL(found.tools.size(), 1u);
  CAF_CHECK_EQUAL(found.tools[0].name, "read-file");
  CAF_CHECK_EQUAL(found.tools[0].alias, "read_file");
  CAF_CHECK(documents()->value == result->value);
  CAF_CHECK_EQUAL(requests, 1);
  CAF_CHECK_EQUAL(status().tools, 1u);
}

CAF_TEST(all_pages_are_read) {
  serve([](const std::string& cursor) {
    auto number = cursor.empty() ? 0 : std::stoi(cursor);
    json page{{"tools", {tool("t" + std::to_string(number))}}};
    if (number < 24) {
      page["nextCursor"] = std::to_string(number + 1);
    }
    return page;
  });
  make_client();
  auto first = documents();
  auto second = documents();
  CAF_REQUIRE(first->value && second->value);
  CAF_CHECK_EQUAL((*first->value)->tools.size(), 25u);
  CAF_CHECK_EQUAL(requests, 25);
}

CAF_TEST(a_repeated_cursor_ends_the_list) {
  serve([](const std::string& cursor) {
    return json{{"tools", {tool("a" + cursor), tool("same")}}, {"nextCursor", "again"}};
  });
  make_client();
  auto result = documents();
  CAF_REQUIRE(result->value);
  CAF_CHECK_EQUAL((*result->value)->tools.size(), 3u);
  CAF_CHECK_EQUAL(requests, 2);
  CAF_CHECK(status().last_error.find("repeats a cursor") != std::string::npos);
}

CAF_TEST(an_endless_list_is_cut) {
  serve([](const std::string& cursor) {
    return json{{"tools", {tool("t" + cursor)}}, {"nextCursor", cursor + "x"}};
  });
  make_client();
  auto result = documents();
  CAF_REQUIRE(result->value);
  CAF_CHECK_EQUAL((*result->value)->tools.size(), 100u);
  CAF_CHECK_EQUAL(requests, 100);
  CAF_CHECK(status().last_error.find("more than 100 pages") != std::string::npos);
}

CAF_TEST(a_list_over_the_size_limit_fails) {
  env->bounds.tool_payload = 10'000;
  serve([](const std::string& cursor) {
    auto page = json{{"tools", {tool("t" + cursor)}}, {"nextCursor", cursor + "x"}};
    page["tools"][0]["description"] = std::string(3000, 'd');
    return page;
  });
  make_client();
  CAF_CHECK(
      tells(documents()->failure, errc::too_large, {"list tools of MCP server \"srv\"", "10000"}));
}

CAF_TEST(a_change_is_listed_anew_when_next_asked_for) {
  make_client();
  auto before = documents();
  serve([](const std::string&) { return json{{"tools", {tool("new")}}}; });
  for (int i = 0; i < 5; ++i) {
    script->children[0].line(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  }
  pass(1s);
  CAF_CHECK_EQUAL(requests, 0);
  auto after = documents();
  CAF_REQUIRE(after->value);
  CAF_CHECK_EQUAL((*after->value)->tools[0].name, "new");
  CAF_CHECK_EQUAL((*before->value)->tools[0].name, "echo");
  documents();
  CAF_CHECK_EQUAL(requests, 1);
}

CAF_TEST(who_holds_documents_sees_that_they_are_overtaken) {
  make_client();
  auto before = *documents()->value;
  CAF_CHECK(!before->outdated.is_set());
  script->children[0].line(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  consume_messages();
  CAF_CHECK(before->outdated.is_set());
  auto after = *documents()->value;
  CAF_CHECK(!after->outdated.is_set());
  script->children[0].exit(0);
  consume_messages();
  CAF_CHECK(after->outdated.is_set());
}

CAF_TEST(a_list_that_changes_all_the_time_is_not_asked_for_all_the_time) {
  serve([this](const std::string&) {
    script->children[0].line(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
    return json{{"tools", {tool("t" + std::to_string(requests))}}};
  });
  make_client();
  for (int i = 0; i < 1000; ++i) {
    CAF_REQUIRE(documents()->value);
  }
  CAF_CHECK(requests < 10);
  auto so_far = requests;
  pass(2s);
  CAF_CHECK_EQUAL(requests, so_far);
  documents();
  CAF_CHECK_EQUAL(requests, so_far + 1);
}

CAF_TEST(tools_that_need_tasks_are_hidden_and_counted) {
  serve([](const std::string& cursor) {
    auto hidden = tool(cursor.empty() ? "a" : "b");
    hidden["execution"] = {{"taskSupport", "required"}};
    json page = {{"tools", {tool("t" + cursor), hidden}}};
    if (cursor.empty()) {
      page["nextCursor"] = "2";
    }
    return page;
  });
  make_client();
  auto result = *documents()->value;
  CAF_CHECK_EQUAL(result->tools.size(), 2u);
  CAF_CHECK_EQUAL(result->hidden, 2u);
}

CAF_TEST(a_change_during_the_listing_is_not_missed) {
  serve([this](const std::string&) {
    script->children[0].line(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
    return json{{"tools", {tool("t" + std::to_string(requests))}}};
  });
  make_client();
  CAF_CHECK_EQUAL((*documents()->value)->tools[0].name, "t1");
  CAF_CHECK_EQUAL((*documents()->value)->tools[0].name, "t2");
}

CAF_TEST(tools_are_listed_anew_after_a_restart) {
  make_client();
  documents();
  serve([](const std::string&) { return json{{"tools", {tool("new")}}}; });
  script->children[0].exit(0);
  pass(200ms);
  auto result = documents();
  CAF_REQUIRE(result->value);
  CAF_CHECK_EQUAL((*result->value)->tools[0].name, "new");
}

CAF_TEST(a_modern_list_is_asked_for_again_after_its_time) {
  server = modern_methods();
  serve([](const std::string&) { return json{{"tools", {tool("t")}}, {"ttlMs", 60'000}}; });
  make_client();
  documents();
  pass(59s);
  documents();
  CAF_CHECK_EQUAL(requests, 1);
  pass(2s);
  CAF_CHECK(documents()->value);
  CAF_CHECK_EQUAL(requests, 2);
}

CAF_TEST(a_server_without_tools_is_not_asked_for_them) {
  server["initialize"] = [](const auto& child, const auto& request) {
    answer(child, request, {{"protocolVersion", "2024-11-05"}, {"capabilities", json::object()}});
  };
  serve([](const std::string&) { return json{}; });
  make_client();
  auto result = documents();
  CAF_REQUIRE(result->value);
  CAF_CHECK((*result->value)->tools.empty());
  CAF_CHECK_EQUAL(requests, 0);
}

CAF_TEST(a_failing_list_is_told_and_tried_again) {
  server["tools/list"] = [](const auto& child, const auto& request) {
    refuse(child, request, -32603, "broken");
  };
  make_client();
  CAF_CHECK(tells(documents()->failure, errc::server_failed,
                  {"list tools of MCP server \"srv\": -32603 broken"}));
  serve([](const std::string&) { return json{{"tools", "?"}}; });
  CAF_CHECK(tells(documents()->failure, errc::malformed, {"list tools of MCP server \"srv\""}));
  serve([](const std::string&) { return json{{"tools", json::array()}}; });
  CAF_CHECK(documents()->value);
}

CAF_TEST(a_silent_list_ends_at_the_deadline_of_who_waits_and_at_its_own) {
  entry.call_timeout = 10s;
  server["tools/list"] = ignore;
  make_client();
  auto early = documents(2s);
  auto late = documents(60s);
  pass(2s);
  CAF_CHECK(tells(early->failure, errc::timeout, {"list tools", "no answer before the deadline"}));
  CAF_CHECK(late->pending());
  pass(8s);
  CAF_CHECK(tells(late->failure, errc::timeout, {"list tools", "no answer before the deadline"}));
}

CAF_TEST(a_death_during_the_listing_is_told) {
  server["tools/list"] = [](const auto& child, const auto&) { child.exit(9); };
  make_client();
  CAF_CHECK(tells(documents()->failure, errc::server_failed, {"\"srv\"", "exited with code 9"}));
}

CAF_TEST_FIXTURE_SCOPE_END()
