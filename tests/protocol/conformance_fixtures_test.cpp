#include "protocol/conformance_fixtures.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;
using kind = served_things::kind;

client_abilities all_abilities() {
  client_abilities all;
  all.elicitation_form = all.sampling = all.roots = true;
  return all;
}

/// Takes the steps of a call, with every question answered, until it ends; null when it never does.
json outcome(const served_things& things, std::string_view method, const std::string& name,
             client_abilities abilities = all_abilities()) {
  served_call call;
  call.method = method;
  call.name = name;
  call.abilities = abilities;
  for (; call.steps < 10; ++call.steps) {
    auto step = things.next(call);
    if (step.refusal) {
      return {{"code", step.refusal->code}, {"data", json::parse(step.refusal->data)}};
    }
    if (!step.result.empty()) {
      return json::parse("{" + step.result + "}");
    }
    for (const auto& question : step.questions) {
      EXPECT_TRUE(json::parse(question.params).is_object()) << name;
      call.answers[question.key] = R"({"action":"accept"})";
    }
  }
  return nullptr;
}

TEST(conformance_fixtures, every_list_entry_is_a_definition) {
  auto things = conformance_fixtures();
  for (auto of : {kind::tools, kind::prompts, kind::resources, kind::templates}) {
    auto entries = things->entries(of);
    EXPECT_FALSE(entries.empty());
    for (const auto& entry : entries) {
      EXPECT_TRUE(json::parse(entry).contains("name")) << entry;
    }
  }
}

TEST(conformance_fixtures, every_tool_and_prompt_comes_to_an_end) {
  auto things = conformance_fixtures();
  for (const auto& entry : things->entries(kind::tools)) {
    auto name = json::parse(entry)["name"].get<std::string>();
    EXPECT_TRUE(things->knows("tools/call", name));
    EXPECT_TRUE(outcome(*things, "tools/call", name).contains("content")) << name;
  }
  for (const auto& entry : things->entries(kind::prompts)) {
    auto name = json::parse(entry)["name"].get<std::string>();
    EXPECT_TRUE(things->knows("prompts/get", name));
    EXPECT_TRUE(outcome(*things, "prompts/get", name).contains("messages")) << name;
  }
  EXPECT_FALSE(things->knows("tools/call", "run_python"));
  EXPECT_FALSE(things->knows("tools/list", "test_simple_text"));
}

TEST(conformance_fixtures, only_what_the_client_declares_is_asked) {
  auto things = conformance_fixtures();
  EXPECT_EQ(outcome(*things, "tools/call", "test_missing_capability", {})["code"], -32021);
  served_call call;
  call.method = "tools/call";
  call.name = "test_input_required_result_capabilities";
  call.abilities.sampling = true;
  auto step = things->next(call);
  ASSERT_EQ(step.questions.size(), 1);
  EXPECT_EQ(step.questions[0].method, "sampling/createMessage");
}

TEST(conformance_fixtures, a_question_that_was_refused_is_not_asked_again) {
  auto things = conformance_fixtures();
  served_call call;
  call.method = "tools/call";
  call.name = "test_sampling";
  call.refusals["sample"] = "no";
  auto result = json::parse("{" + things->next(call).result + "}");
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["content"][0]["text"], "LLM response: no");
}

TEST(conformance_fixtures, resources_have_their_content) {
  auto things = conformance_fixtures();
  for (const auto& entry : things->entries(kind::resources)) {
    auto uri = json::parse(entry)["uri"].get<std::string>();
    EXPECT_EQ(json::parse(things->content(uri))["uri"], uri);
  }
  auto made = json::parse(things->content("test://template/a\"b/data"));
  EXPECT_EQ(json::parse(made["text"].get<std::string>())["id"], "a\"b");
  EXPECT_EQ(things->content("test://template//data"), "");
  EXPECT_EQ(things->content("bulkhead://capabilities"), "");
}

} // namespace
} // namespace bulkhead
