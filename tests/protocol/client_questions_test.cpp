#include "protocol/client_questions.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/client_abilities.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

json params_for(std::string_view method, const json& params, std::string_view server) {
  auto text = params.dump();
  auto result = question_params(method, text, server);
  return result ? json::parse(*result) : json(nullptr);
}

mcp_request request_with(const std::string& params) {
  static std::string kept;
  kept = params;
  mcp_request request;
  request.params = outline_of_part(kept);
  return request;
}

TEST(client_questions, a_person_is_told_who_asks) {
  const json asked = {{"message", "Sure?\n\"x\""}, {"requestedSchema", json::object()}};
  EXPECT_EQ(params_for("elicitation/create", asked, "files")["message"],
            "MCP server \"files\" asks: Sure?\n\"x\"");
  EXPECT_EQ(params_for("elicitation/create", asked, "files")["requestedSchema"], json::object());
  EXPECT_EQ(params_for("elicitation/create", asked, {}), asked);
}

TEST(client_questions, what_belongs_to_another_connection_is_left_out) {
  const json asked = {{"_meta", {{"progressToken", 1}}},
                      {"task", {{"ttl", 1}}},
                      {"messages", json::array()},
                      {"maxTokens", 1}};
  EXPECT_EQ(params_for("sampling/createMessage", asked, "x"),
            (json{{"messages", json::array()}, {"maxTokens", 1}}));
  EXPECT_EQ(*question_params("roots/list", {}, "x"), "{}");
}

TEST(client_questions, what_can_not_be_asked_is_refused) {
  EXPECT_FALSE(question_params("roots/list", "[]", {}));
  EXPECT_FALSE(question_params("elicitation/create", "{}", {}));
  EXPECT_FALSE(question_params("elicitation/create", R"({"message":1})", {}));
}

TEST(client_questions, answers_are_checked) {
  const auto* elicit = "elicitation/create";
  const auto* sample = "sampling/createMessage";
  EXPECT_TRUE(check_client_result(elicit, R"({"action":"accept","content":{"a":1}})"));
  EXPECT_TRUE(check_client_result(elicit, R"({"action":"cancel","content":null})"));
  EXPECT_FALSE(check_client_result(elicit, R"({"action":"accept","content":[1]})"));
  EXPECT_FALSE(check_client_result(elicit, R"({"content":{}})"));
  EXPECT_FALSE(check_client_result(elicit, "12"));
  EXPECT_TRUE(check_client_result(sample, R"({"role":"assistant","content":{},"model":"m"})"));
  EXPECT_TRUE(check_client_result(sample, R"({"role":"assistant","content":[],"model":"m"})"));
  EXPECT_FALSE(check_client_result(sample, R"({"role":"assistant","content":"x","model":"m"})"));
  EXPECT_FALSE(check_client_result(sample, R"({"role":"assistant","content":{}})"));
  EXPECT_TRUE(check_client_result("roots/list", R"({"roots":[]})"));
  EXPECT_FALSE(check_client_result("roots/list", "{}"));
}

TEST(client_questions, refusals_tell_the_clients_reason) {
  auto denied = question_refused("sampling/createMessage", R"({"code":-1,"message":"no\u001b"})");
  EXPECT_EQ(denied.code, errc::denied);
  EXPECT_EQ(denied.message, "sampling/createMessage: the client refused it: no  (-1)");
  EXPECT_EQ(question_refused("roots/list", R"({"code":-32601,"message":"?"})").code,
            errc::unavailable);
}

TEST(client_questions, a_result_that_asks) {
  auto result =
      json::parse(input_required_result({{"a\"", "roots/list", {}}, {"b", "m", "{\"x\":1}"}}, "s"));
  EXPECT_EQ(result["resultType"], "input_required");
  EXPECT_EQ(result["requestState"], "s");
  EXPECT_EQ(result["inputRequests"]["a\""],
            (json{{"method", "roots/list"}, {"params", json::object()}}));
  EXPECT_EQ(result["inputRequests"]["b"]["params"]["x"], 1);
}

TEST(client_questions, what_a_client_comes_back_with) {
  auto none = read_input_responses(request_with("{}"));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->state.empty() && none->answers.empty());
  auto back = read_input_responses(
      request_with(R"({"requestState":"s\u0041","inputResponses":{"k":{"action":"accept"}}})"));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->state, "sA");
  EXPECT_EQ(back->answers.at("k"), R"({"action":"accept"})");
  for (const auto* bad : {R"({"requestState":1})", R"({"requestState":""})",
                          R"({"inputResponses":[]})", R"({"inputResponses":{"k":1}})"}) {
    auto refused = read_input_responses(request_with(bad));
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, rpc_code::invalid_params);
  }
}

TEST(client_questions, calls_are_told_apart_by_what_they_mean) {
  auto digest = call_digest("t", R"({"a":"1","b":2})");
  EXPECT_EQ(digest, call_digest("t", R"({ "b": 2, "a": "\u0031" })"));
  EXPECT_NE(digest, call_digest("u", R"({"a":"1","b":2})"));
  EXPECT_NE(digest, call_digest("t", R"({"a":"1","b":3})"));
  EXPECT_EQ(call_digest("t", {}), call_digest("t", "{}"));
  EXPECT_NE(call_digest("t", R"({"a":1e999})"), call_digest("t", R"({"a":2e999})"));
}

TEST(client_abilities, are_read_as_the_revision_knows_them) {
  const auto* all = R"({"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}})";
  auto latest = read_client_abilities(all, "2025-11-25");
  EXPECT_EQ(latest, (client_abilities{true, true, true, true, true}));
  EXPECT_EQ(read_client_abilities(all, modern_revision), latest);
  EXPECT_EQ(read_client_abilities(all, "2025-06-18"),
            (client_abilities{true, false, true, false, true}));
  EXPECT_EQ(read_client_abilities(all, "2025-03-26"),
            (client_abilities{false, false, true, false, true}));
  EXPECT_TRUE(read_client_abilities(R"({"elicitation":{}})", "2025-11-25").elicitation_form);
  EXPECT_FALSE(
      read_client_abilities(R"({"elicitation":{"url":{}}})", "2025-11-25").elicitation_form);
  for (const auto* none : {"", "{}", R"({"elicitation":true,"sampling":1,"roots":[]})"}) {
    EXPECT_EQ(read_client_abilities(none, "2025-11-25"), client_abilities{}) << none;
  }
}

TEST(client_abilities, are_declared_as_they_were_read) {
  for (const auto* each :
       {"{}", R"({"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}})",
        R"({"elicitation":{"url":{}}})", R"({"sampling":{}})"}) {
    EXPECT_EQ(to_json(read_client_abilities(each, "2025-11-25")), each);
  }
}

TEST(client_abilities, tell_what_is_lacking) {
  client_abilities none;
  EXPECT_EQ(lacking_capability(none, "sampling/createMessage", "{}"), R"({"sampling":{}})");
  EXPECT_EQ(lacking_capability(none, "elicitation/create", R"({"mode":"url"})"),
            R"({"elicitation":{"url":{}}})");
  EXPECT_EQ(lacking_capability(none, "elicitation/create", {}), R"({"elicitation":{"form":{}}})");
  EXPECT_EQ(lacking_capability(none, "roots/list", {}), R"({"roots":{}})");
  EXPECT_EQ(lacking_capability(none, "tools/call", {}), "{}");
  client_abilities some{true, false, true, false, true};
  EXPECT_EQ(lacking_capability(some, "elicitation/create", R"({"mode":"form"})"), "");
  EXPECT_EQ(lacking_capability(some, "sampling/createMessage", "{}"), "");
  EXPECT_EQ(lacking_capability(some, "sampling/createMessage", R"({"toolChoice":{}})"),
            R"({"sampling":{"tools":{}}})");
  EXPECT_EQ(lacking_capability(some, "roots/list", {}), "");
}

} // namespace
} // namespace bulkhead
