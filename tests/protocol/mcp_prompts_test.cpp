#include "protocol/mcp_prompts.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

struct mcp_prompts : testing::Test {
  mcp_prompts() {
    catalogue.servers.resize(3);
    catalogue.servers[0].name = "Mail";
    catalogue.servers[1].name = "files";
    catalogue.servers[2].name = "vault";
    catalogue.rules.deny = {"vault"};
  }

  mcp_request ask(const json& params) {
    text = params.dump();
    mcp_request request;
    request.params = outline_of_part(text);
    return request;
  }

  /// The prompt's text; empty when it is refused.
  std::string text_for(const json& arguments) {
    json params = {{"name", prompt_name}};
    if (!arguments.is_null()) {
      params["arguments"] = arguments;
    }
    auto result = prompt_result(ask(params), catalogue, {});
    return result ? json::parse(*result)["messages"][0]["content"]["text"].get<std::string>() : "";
  }

  tl::expected<completion_request, rpc_refusal> complete(const json& reference,
                                                         const std::string& argument,
                                                         const std::string& value,
                                                         const json& context = nullptr) {
    return read_completion(ask({{"ref", reference},
                                {"argument", {{"name", argument}, {"value", value}}},
                                {"context", context}}));
  }

  server_catalogue catalogue;
  std::string text;
  const json prompt = {{"type", "ref/prompt"}, {"name", prompt_name}};
  const json output = {{"type", "ref/resource"}, {"uri", output_template}};
  const json artifact = {{"type", "ref/resource"}, {"uri", artifact_template}};
};

using what = completion_request::what;

TEST_F(mcp_prompts, the_prompt_names_task_and_servers) {
  auto text = text_for({{"task", "sum up my mail"}, {"server", "Mail"}});
  for (const auto* part : {"run_python", "sum up my mail", "use Mail here", "Mail, files"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("vault"), std::string::npos);
  EXPECT_FALSE(text_for(nullptr).empty());
  EXPECT_FALSE(text_for({{"other", "x"}}).empty());
}

TEST_F(mcp_prompts, bad_requests_for_a_prompt_are_refused) {
  for (const auto& params : {json::object(), json{{"name", "other"}}, json{{"name", 1}},
                             json{{"name", prompt_name}, {"arguments", "x"}},
                             json{{"name", prompt_name}, {"arguments", {{"task", 1}}}}}) {
    auto result = prompt_result(ask(params), catalogue, {});
    ASSERT_FALSE(result) << params;
    EXPECT_EQ(result.error().code, rpc_code::invalid_params);
  }
}

TEST_F(mcp_prompts, the_definition_has_the_arguments_that_complete) {
  auto definition = json::parse(prompt_definition());
  EXPECT_EQ(definition["name"], prompt_name);
  for (const auto& argument : definition["arguments"]) {
    EXPECT_TRUE(complete(prompt, argument["name"], ""));
    EXPECT_EQ(argument["required"], false);
  }
}

TEST_F(mcp_prompts, what_is_completed) {
  EXPECT_EQ(complete(prompt, "server", "m")->of, what::server);
  EXPECT_EQ(complete(prompt, "server", "m")->begun, "m");
  EXPECT_EQ(complete(prompt, "task", "")->of, what::nothing);
  EXPECT_EQ(complete(output, "handle", "")->of, what::handle);
  EXPECT_TRUE(complete(output, "handle", "")->outputs);
  EXPECT_EQ(complete(output, "stream", "")->of, what::stream);
  EXPECT_EQ(complete(output, "offset", "")->of, what::nothing);
  auto name = complete(artifact, "name", "a", {{"arguments", {{"handle", "h"}}}});
  EXPECT_EQ(name->of, what::artifact);
  EXPECT_EQ(name->handle, "h");
}

TEST_F(mcp_prompts, what_does_not_exist_is_not_completed) {
  for (const auto& refused :
       {complete(prompt, "colour", ""), complete(output, "name", ""),
        complete(artifact, "stream", ""),
        complete({{"type", "ref/prompt"}, {"name", "x"}}, "a", ""),
        complete({{"type", "ref/resource"}, {"uri", "x://{y}"}}, "y", ""),
        complete({{"type", "ref/tool"}}, "y", ""), read_completion(ask(json::object())),
        read_completion(ask({{"ref", prompt}, {"argument", {{"name", "server"}}}}))}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, rpc_code::invalid_params);
  }
}

TEST_F(mcp_prompts, servers_that_policy_denies_are_not_suggested) {
  EXPECT_EQ(completed_servers(catalogue), (std::vector<std::string>{"Mail", "files"}));
}

TEST_F(mcp_prompts, things_that_runs_left_are_suggested_once) {
  const std::string one(32, '1');
  const std::string two(32, '2');
  const std::vector<resource_entry> entries = {
      {artifact_uri(two, "b c"), "b c", "text/plain", 1},
      {artifact_uri(two, "d"), "d", "text/plain", 1},
      {output_uri(one, stream_id::out), "stdout", "text/plain", 1},
      {output_uri(one, stream_id::err), "stderr", "text/plain", 1},
      {artifact_uri(one, "d"), "d", "text/plain", 1}};
  using names = std::vector<std::string>;
  EXPECT_EQ(completed_resources({what::handle, "", "", true}, entries), names{one});
  EXPECT_EQ(completed_resources({what::handle, "", "", false}, entries), (names{two, one}));
  EXPECT_EQ(completed_resources({what::artifact, "", "", false}, entries), (names{"b c", "d"}));
  EXPECT_EQ(completed_resources({what::artifact, "", one, false}, entries), names{"d"});
}

TEST_F(mcp_prompts, completions_begin_with_what_was_typed) {
  completion_request asked{what::server, "FI", {}, false};
  auto result = json::parse(completion_result(asked, {"Mail", "files", "fix"}, {true}));
  EXPECT_EQ(result["completion"],
            json::parse(R"({"values":["files","fix"],"total":2,"hasMore":false})"));
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_FALSE(result.contains("ttlMs"));
  std::vector<std::string> many(150, "fi");
  result = json::parse(completion_result(asked, many, {}));
  EXPECT_EQ(result["completion"]["values"].size(), 100U);
  EXPECT_EQ(result["completion"]["total"], 150);
  EXPECT_EQ(result["completion"]["hasMore"], true);
}

} // namespace
} // namespace bulkhead
