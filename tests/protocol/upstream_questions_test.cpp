#include "protocol/upstream_questions.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/json_rpc.hpp"

using namespace bulkhead;
using namespace bulkhead::upstream;
using nlohmann::json;

namespace {

const limits bounds;

std::optional<progress_note> progress_of(std::string_view params) {
  return read_progress(params, secret_filter{{{"TOKEN", "hunter2!"}}});
}

std::string log_of(std::string_view params) {
  return read_log(params, secret_filter{{{"TOKEN", "hunter2!"}}});
}

client_abilities all() {
  return {true, true, true, true, true};
}

int code_of(const tl::expected<question, rpc_refusal>& read) {
  return read ? 0 : read.error().code;
}

int refused(std::string_view method, std::string_view params, const client_abilities& declared) {
  return code_of(read_question(method, params, declared, bounds));
}

TEST(upstream_questions, what_concerns_the_connection_or_other_servers_is_left_out) {
  auto read = read_question("sampling/createMessage",
                            R"({"messages":[],"_meta":{"progressToken":1},"task":{"ttl":1},)"
                            R"("includeContext":"allServers","maxTokens": 5})",
                            all(), bounds);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->method, "sampling/createMessage");
  EXPECT_EQ(read->params, R"({"messages":[],"maxTokens":5})");
}

TEST(upstream_questions, only_what_was_declared_can_be_asked) {
  constexpr auto form = R"({"message":"m","requestedSchema":{}})";
  constexpr auto url = R"({"mode":"url","message":"m","url":"https://a.example"})";
  EXPECT_EQ(refused("elicitation/create", form, all()), 0);
  EXPECT_EQ(refused("elicitation/create", url, all()), 0);
  EXPECT_EQ(refused("elicitation/create", form, {}), rpc_code::method_not_found);
  EXPECT_EQ(refused("sampling/createMessage", "{}", {}), rpc_code::method_not_found);
  auto forms = all();
  forms.elicitation_url = forms.sampling_tools = false;
  EXPECT_EQ(refused("elicitation/create", form, forms), 0);
  EXPECT_EQ(refused("elicitation/create", url, forms), rpc_code::invalid_params);
  EXPECT_EQ(refused("sampling/createMessage", R"({"messages":[]})", forms), 0);
  EXPECT_EQ(refused("sampling/createMessage", R"({"tools":[]})", forms), rpc_code::invalid_params);
  auto pages = all();
  pages.elicitation_form = false;
  EXPECT_EQ(refused("elicitation/create", form, pages), rpc_code::invalid_params);
  EXPECT_EQ(refused("elicitation/create", url, pages), 0);
}

TEST(upstream_questions, unusable_questions_are_refused) {
  for (const char* params :
       {"", "[]", R"({"mode":"other"})", R"({"mode":1})", R"({"mode":"url"})",
        R"({"mode":"url","url":"file:///etc/passwd"})", R"({"mode":"url","url":"javascript:x"})"}) {
    EXPECT_EQ(refused("elicitation/create", params, all()), rpc_code::invalid_params) << params;
  }
  auto large = json({{"message", std::string(bounds.question, 'x')}}).dump();
  EXPECT_EQ(refused("elicitation/create", large, all()), rpc_code::invalid_params);
}

TEST(upstream_questions, servers_are_told_why_there_is_no_answer) {
  auto code = [](errc reason) { return unanswered("m", {reason, "why"}).code; };
  EXPECT_EQ(unanswered("m", {errc::denied, "why"}).message, "m: why");
  EXPECT_EQ(code(errc::denied), -1);
  EXPECT_EQ(code(errc::unavailable), rpc_code::method_not_found);
  EXPECT_EQ(code(errc::too_large), rpc_code::invalid_params);
  EXPECT_EQ(code(errc::timeout), rpc_code::internal_error);
}

TEST(upstream_questions, complete_results_need_nothing) {
  auto complete = [](bool modern, std::string_view text) {
    auto read = read_call_result(modern, text, bounds);
    return read && !*read;
  };
  EXPECT_TRUE(complete(false, R"({"content":[]})"));
  EXPECT_TRUE(complete(true, R"({"content":[],"resultType":"complete"})"));
  EXPECT_TRUE(complete(true, R"({"content":["input_required"]})"));
  EXPECT_TRUE(complete(false, R"({"resultType":"input_required","inputRequests":{}})"));
  EXPECT_FALSE(complete(true, R"({"resultType":"input_required","requestState":"s"})"));
}

TEST(upstream_questions, input_is_required_by_key_and_the_state_stays_as_it_came) {
  auto read = read_call_result(true,
                               R"({"resultType":"input_required","requestState":"a\u0062\/",)"
                               R"("inputRequests":{"x":{"method":"roots/list"},)"
                               R"("y":{"method":"elicitation/create","params":{"message":"m"}}}})",
                               bounds);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->state, R"("a\u0062\/")");
  ASSERT_EQ((*read)->requests.size(), 2U);
  EXPECT_EQ((*read)->requests[0].key, "x");
  EXPECT_EQ((*read)->requests[0].method, "roots/list");
  EXPECT_EQ((*read)->requests[0].params, "");
  EXPECT_EQ((*read)->requests[1].params, R"({"message":"m"})");
}

TEST(upstream_questions, unusable_results_fail_the_call) {
  json many;
  for (std::uint32_t i = 0; i <= bounds.call_questions; ++i) {
    many[std::to_string(i)] = {{"method", "roots/list"}};
  }
  for (const auto& text :
       {std::string{"[]"}, std::string{R"({"resultType":"input_required"})"},
        std::string{R"({"resultType":"input_required","inputRequests":{}})"},
        std::string{R"({"resultType":"input_required","requestState":5})"},
        std::string{R"({"resultType":"input_required","inputRequests":{"a":{}}})"},
        json({{"resultType", "input_required"}, {"inputRequests", many}}).dump()}) {
    auto read = read_call_result(true, text, bounds);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, errc::server_failed);
  }
}

TEST(upstream_questions, progress_is_read_by_its_token) {
  EXPECT_EQ(progress_of(R"({"progressToken":7,"progress":2,"total":4,"message":"a\nb"})"),
            (progress_note{7, 2, 4, "a b"}));
  EXPECT_EQ(progress_of(R"({"progressToken":0,"progress":0.5})"), (progress_note{0, 0.5, 0, ""}));
  EXPECT_EQ(progress_of(R"({"progressToken":7,"progress":1,"message":"hunter2!"})")->message,
            "[hidden]");
  for (const char* other :
       {"", "[]", "{}", R"({"progressToken":"7","progress":1})",
        R"({"progressToken":-7,"progress":1})", R"({"progressToken":7})",
        R"({"progressToken":7,"progress":"1"})", R"({"progressToken":7,"progress":1e999})"}) {
    EXPECT_FALSE(progress_of(other)) << other;
  }
  auto large = json({{"progressToken", 1}, {"progress", 1}, {"message", std::string(99'999, 'x')}});
  EXPECT_FALSE(progress_of(large.dump()));
}

TEST(upstream_questions, logs_become_one_short_line) {
  EXPECT_EQ(log_of(R"({"level":"info","logger":"db","data":"a\u001b[2Jb"})"), "info db: a [2Jb");
  EXPECT_EQ(log_of(R"({"level":"info","data":{"a":[1]}})"), R"(info: {"a":[1]})");
  EXPECT_EQ(log_of(json({{"data", std::string(5'000, 'x')}}).dump()).size(), 512U);
  EXPECT_NE(log_of("[]").find("can't be read"), std::string::npos);
  EXPECT_EQ(log_of(R"({"level":"info","data":{"a":"hunter2!"}})"), R"(info: {"a":"[hidden]"})");
}

TEST(upstream_questions, roots_are_listed) {
  EXPECT_EQ(roots_result({}), R"({"roots":[]})");
  EXPECT_EQ(roots_result({"file:///a", "file:///b"}),
            R"({"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]})");
}

} // namespace
