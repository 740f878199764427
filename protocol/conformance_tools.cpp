#include <array>

#include "protocol/conformance_steps.hpp"

namespace bulkhead::conformance {

namespace {

using namespace std::chrono_literals;

/// Between two signs of life of the tools that give some.
constexpr auto beat = 50ms;

/// A sound without samples (WAV).
constexpr std::string_view silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

constexpr std::string_view no_arguments = R"({"type":"object","properties":{}})";

constexpr std::string_view schema_2020_12 =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",)"
    R"("$defs":{"address":{"$anchor":"addressDef","type":"object",)"
    R"("properties":{"street":{"type":"string"},"city":{"type":"string"}}}},)"
    R"("properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},)"
    R"("contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},)"
    R"("email":{"type":"string"}},)"
    R"("allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],)"
    R"("if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},)"
    R"("then":{"required":["phone"]},"else":{"required":["email"]},)"
    R"("additionalProperties":false})";

served_step tells_progress(const served_call& call) {
  switch (call.steps) {
  case 0:
    return progresses(0, 0ms);
  case 1:
    return progresses(50, beat);
  case 2:
    return progresses(100, beat);
  default:
    return says("Progress was told");
  }
}

served_step tells_logs(const served_call& call) {
  switch (call.steps) {
  case 0:
    return logs("Tool execution started");
  case 1:
    return logs("Tool processing data", beat);
  case 2:
    return logs("Tool execution completed", beat);
  default:
    return says("Logs were told");
  }
}

served_step reconnects(const served_call& call) {
  served_step step;
  if (call.steps == 0) {
    step.breaks_off = true;
    return step;
  }
  step = says("The client came back for this");
  step.pause = 2 * beat;
  return step;
}

served_step needs_sampling(const served_call& call) {
  if (call.abilities.sampling) {
    return says("The client can sample");
  }
  served_step step;
  step.refusal =
      rpc_refusal{rpc_code::missing_client_capability, "The client must declare sampling",
                  R"({"requiredCapabilities":{"sampling":{}}})"};
  return step;
}

std::vector<input_request> form_with_defaults() {
  return {form(
      "defaults", "Please review and update the form fields with defaults",
      {{"name", {{"type", "string"}, {"default", "John Doe"}}},
       {"age", {{"type", "integer"}, {"default", 30}}},
       {"score", {{"type", "number"}, {"default", 95.5}}},
       {"status",
        {{"type", "string"}, {"enum", {"active", "inactive", "pending"}}, {"default", "active"}}},
       {"verified", {{"type", "boolean"}, {"default", true}}}})};
}

json titled(const char* value, const char* title) {
  return {{"const", value}, {"title", title}};
}

std::vector<input_request> form_with_enums() {
  auto titles = json::array({titled("value1", "First Option"), titled("value2", "Second Option"),
                             titled("value3", "Third Option")});
  json options = {"option1", "option2", "option3"};
  return {form(
      "enums", "Please select options from the enum fields",
      {{"untitledSingle", {{"type", "string"}, {"enum", options}}},
       {"titledSingle", {{"type", "string"}, {"oneOf", titles}}},
       {"legacyEnum",
        {{"type", "string"},
         {"enum", {"opt1", "opt2", "opt3"}},
         {"enumNames", {"Option One", "Option Two", "Option Three"}}}},
       {"untitledMulti",
        {{"type", "array"},
         {"minItems", 1},
         {"maxItems", 3},
         {"items", {{"type", "string"}, {"enum", options}}}}},
       {"titledMulti",
        {{"type", "array"}, {"minItems", 1}, {"maxItems", 3}, {"items", {{"anyOf", titles}}}}}})};
}

served_step asks_twice(const served_call& call) {
  auto first = text_form("step1", "Step 1: what is your name?", "name");
  auto second = text_form("step2", "Step 2: what is your favorite color?", "color");
  if (!open_questions(call, {first}).empty()) {
    return asks(call, {first}, "");
  }
  return asks(call, {second}, "Multi-round complete:");
}

served_step asks_what_it_can(const served_call& call) {
  std::vector<input_request> questions;
  if (call.abilities.elicitation_form) {
    questions.push_back(text_form("elicit_input", "Elicitation input", "value"));
  }
  if (call.abilities.sampling) {
    questions.push_back(sampling("sample_input", "Sample request"));
  }
  return asks(call, questions, "Asked what the client declares:");
}

served_step triggers(const served_call& call, served_step::list which) {
  return call.steps == 0 ? changes(which) : says("The list is another now");
}

constexpr std::array all_tools = {
    fixture{"test_simple_text", "Answers text", no_arguments,
            [](const served_call&) { return says("This is a simple text response for testing."); }},
    fixture{"test_image_content", "Answers an image", no_arguments,
            [](const served_call&) { return content(json::array({image_block()})); }},
    fixture{"test_audio_content", "Answers a sound", no_arguments,
            [](const served_call&) {
              return content(
                  json::array({{{"type", "audio"}, {"data", silence}, {"mimeType", "audio/wav"}}}));
            }},
    fixture{"test_embedded_resource", "Answers a resource", no_arguments,
            [](const served_call&) {
              return content(
                  json::array({resource_block("test://embedded-resource", "text/plain",
                                              "This is an embedded resource content.")}));
            }},
    fixture{"test_multiple_content_types", "Answers text, an image and a resource", no_arguments,
            [](const served_call&) {
              return content(
                  json::array({text_block("Multiple content types test:"), image_block(),
                               resource_block("test://mixed-content-resource", "application/json",
                                              R"({"test":"data","value":123})")}));
            }},
    fixture{"test_error_handling", "Fails", no_arguments,
            [](const served_call&) {
              return content(
                  json::array({text_block("This tool intentionally returns an error for testing")}),
                  true);
            }},
    fixture{"test_tool_with_progress", "Tells its progress", no_arguments, tells_progress},
    fixture{"test_tool_with_logging", "Logs", no_arguments, tells_logs},
    fixture{"test_logging_tool", "Logs", no_arguments, tells_logs},
    fixture{"test_reconnection", "Closes its stream in the middle", no_arguments, reconnects},
    fixture{"json_schema_2020_12_tool", "Has a schema of all sorts", schema_2020_12,
            [](const served_call& call) { return says("Called with: " + call.arguments); }},
    fixture{
        "test_header_parameter", "Has a parameter that clients mirror in a header",
        R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})",
        [](const served_call& call) { return says("Region: " + argument(call, "region")); }},
    fixture{"test_sampling", "Asks the client's model",
            R"({"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]})",
            [](const served_call& call) {
              return asks(call, {sampling("sample", argument(call, "prompt"))}, "LLM response:");
            }},
    fixture{
        "test_elicitation", "Asks the user",
        R"({"type":"object","properties":{"message":{"type":"string"}},"required":["message"]})",
        [](const served_call& call) {
          return asks(call, {text_form("elicit", argument(call, "message"), "response")},
                      "User response:");
        }},
    fixture{"test_elicitation_sep1034_defaults", "Asks the user, with defaults", no_arguments,
            [](const served_call& call) {
              return asks(call, form_with_defaults(), "Elicitation completed:");
            }},
    fixture{"test_elicitation_sep1330_enums", "Asks the user to choose", no_arguments,
            [](const served_call& call) {
              return asks(call, form_with_enums(), "Elicitation completed:");
            }},
    fixture{"test_missing_capability", "Needs a client that samples", no_arguments, needs_sampling},
    fixture{"test_streaming_elicitation", "Tells its progress, then asks", no_arguments,
            [](const served_call& call) {
              return call.steps == 0
                         ? progresses(50, 0ms)
                         : asks(call, {text_form("name", "What is your name?", "name")}, "Hello");
            }},
    fixture{"test_input_required_result_elicitation", "Asks the user", no_arguments,
            [](const served_call& call) {
              return asks(call, {text_form("user_name", "What is your name?", "name")}, "Hello");
            }},
    fixture{"test_input_required_result_sampling", "Asks the client's model", no_arguments,
            [](const served_call& call) {
              return asks(call, {sampling("capital_question", "What is the capital of France?")},
                          "Sampled:");
            }},
    fixture{"test_input_required_result_list_roots", "Asks for roots", no_arguments,
            [](const served_call& call) { return asks(call, {roots("client_roots")}, "Roots:"); }},
    fixture{"test_input_required_result_request_state", "Asks, with state", no_arguments,
            [](const served_call& call) { return asks(call, {confirmation()}, "state-ok:"); }},
    fixture{"test_input_required_result_multiple_inputs", "Asks for three things", no_arguments,
            [](const served_call& call) {
              return asks(call,
                          {text_form("user_name", "What is your name?", "name"),
                           sampling("greeting", "Generate a greeting"), roots("client_roots")},
                          "Got all:");
            }},
    fixture{"test_input_required_result_multi_round", "Asks twice", no_arguments, asks_twice},
    fixture{"test_input_required_result_tampered_state", "Asks, with state", no_arguments,
            [](const served_call& call) { return asks(call, {confirmation()}, "integrity-ok:"); }},
    fixture{"test_input_required_result_capabilities", "Asks what the client can answer",
            no_arguments, asks_what_it_can},
    fixture{"test_trigger_tool_change", "Changes the tools", no_arguments,
            [](const served_call& call) { return triggers(call, served_step::list::tools); }},
    fixture{"test_trigger_prompt_change", "Changes the prompts", no_arguments,
            [](const served_call& call) { return triggers(call, served_step::list::prompts); }},
};

} // namespace

std::span<const fixture> tools() {
  return all_tools;
}

} // namespace bulkhead::conformance
