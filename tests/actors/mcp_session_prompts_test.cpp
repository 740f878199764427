#define CAF_SUITE mcp_session_prompts

#include "protocol/mcp_prompts.hpp"
#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string handle(32, 'a');

struct fixture : session_fixture {
  json complete(const json& reference, const std::string& argument, const std::string& value) {
    ask(1, "completion/complete",
        {{"ref", reference}, {"argument", {{"name", argument}, {"value", value}}}});
    return result(1, "/completion/values");
  }

  const json prompt = {{"type", "ref/prompt"}, {"name", prompt_name}};
  const json output = {{"type", "ref/resource"}, {"uri", output_template}};
  const json artifact = {{"type", "ref/resource"}, {"uri", artifact_template}};
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_session_prompts_tests, fixture)

CAF_TEST(the prompt in both eras) {
  initialize();
  ask(1, "prompts/get", {{"name", "use-bulkhead"}, {"arguments", {{"task", "count my files"}}}});
  auto text = result(1, "/messages/0/content/text").get<std::string>();
  CAF_CHECK(text.find("count my files") != std::string::npos);
  CAF_CHECK(text.find("memory") != std::string::npos);
  CAF_CHECK(text.find("vault") == std::string::npos);
  CAF_CHECK(!result(1).contains("resultType"));
  ask_modern(2, "prompts/get", {{"name", "use-bulkhead"}});
  CAF_CHECK_EQUAL(result(2, "/resultType"), json("complete"));
  CAF_CHECK(!result(2).contains("ttlMs"));
  ask(3, "prompts/get", {{"name", "other"}});
  CAF_CHECK_EQUAL(code(3), -32602);
}

CAF_TEST(completions from the configuration) {
  initialize();
  CAF_CHECK_EQUAL(complete(prompt, "server", "m"), json::array({"memory"}));
  CAF_CHECK_EQUAL(complete(prompt, "server", "v"), json::array());
  CAF_CHECK_EQUAL(complete(prompt, "task", ""), json::array());
  CAF_CHECK_EQUAL(complete(output, "stream", "stde"), json::array({"stderr"}));
  complete(prompt, "colour", "");
  CAF_CHECK_EQUAL(code(1), -32602);
}

CAF_TEST(completions from what runs left) {
  left->list.answer =
      resource_page{{{artifact_uri(handle, "a.png"), "a.png", "image/png", 1},
                     {output_uri(handle, stream_id::out), "stdout", "text/plain", 1}},
                    "more"};
  initialize();
  CAF_CHECK_EQUAL(complete(output, "handle", "a"), json::array({handle}));
  CAF_CHECK_EQUAL(complete(artifact, "name", ""), json::array({"a.png"}));
  CAF_CHECK_EQUAL(left->lists.back().first, "local");
}

CAF_TEST(a store that fails or does not answer suggests nothing) {
  initialize();
  left->list.refuse_with(errc::unavailable, "Input/output error");
  CAF_CHECK_EQUAL(complete(output, "handle", ""), json::array());
  messages->clear();
  left->list = {};
  left->list.held = true;
  complete(output, "handle", "");
  CAF_CHECK_EQUAL(answers(1), 0u);
  pass(seconds{6});
  CAF_CHECK_EQUAL(result(1, "/completion/values"), json::array());
}

CAF_TEST(the output schema is read in both eras) {
  initialize();
  ask(1, "tools/list");
  auto uri = result(1, "/tools/0/_meta/bulkhead~1outputSchema");
  ask(2, "resources/read", {{"uri", uri}});
  auto schema = json::parse(result(2, "/contents/0/text").get<std::string>());
  CAF_CHECK_EQUAL(schema["type"], json("object"));
  ask_modern(3, "resources/read", {{"uri", uri}});
  CAF_CHECK_EQUAL(result(3, "/cacheScope"), json("public"));
}

CAF_TEST_FIXTURE_SCOPE_END()
