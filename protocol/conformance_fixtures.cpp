#include "protocol/conformance_fixtures.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// One red pixel (PNG), and a sound without samples (WAV).
constexpr std::string_view pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg==";
constexpr std::string_view silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Between two signs of life of the tools that give some.
constexpr auto beat = 50ms;

json text_block(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

json image_block() {
  return {{"type", "image"}, {"data", pixel}, {"mimeType", "image/png"}};
}

json resource_block(std::string_view uri, std::string_view mime_type, std::string_view text) {
  return {{"type", "resource"},
          {"resource", {{"uri", uri}, {"mimeType", mime_type}, {"text", text}}}};
}

served_step content(const json& blocks, bool failed = false) {
  served_step step;
  step.result = fmt::format(R"("content":{}{})", blocks.dump(), failed ? R"(,"isError":true)" : "");
  return step;
}

served_step says(std::string_view text) {
  return content(json::array({text_block(text)}));
}

served_step messages(std::initializer_list<json> contents) {
  auto list = json::array();
  for (const auto& each : contents) {
    list.push_back({{"role", "user"}, {"content", each}});
  }
  served_step step;
  step.result = fmt::format(R"("messages":{})", list.dump());
  return step;
}

served_step logs(std::string_view text, std::chrono::milliseconds pause = 0ms) {
  served_step step;
  step.pause = pause;
  step.log = text;
  return step;
}

served_step progresses(std::uint32_t done, std::chrono::milliseconds pause) {
  served_step step;
  step.pause = pause;
  step.progress = done;
  return step;
}

served_step changes(served_step::list which) {
  served_step step;
  step.changed = which;
  return step;
}

// Questions for the client.

input_request form(std::string_view key, std::string_view message, json properties,
                   json required = json::array()) {
  json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
  return {std::string{key}, "elicitation/create",
          json{{"message", message}, {"requestedSchema", std::move(schema)}}.dump()};
}

input_request text_form(std::string_view key, std::string_view message, const char* field) {
  return form(key, message, {{field, {{"type", "string"}}}}, json::array({field}));
}

input_request confirmation() {
  return form("confirm", "Please confirm", {{"ok", {{"type", "boolean"}}}}, json::array({"ok"}));
}

input_request sampling(std::string_view key, std::string_view prompt) {
  json message = {{"role", "user"}, {"content", text_block(prompt)}};
  return {std::string{key}, "sampling/createMessage",
          json{{"messages", json::array({message})}, {"maxTokens", 100}}.dump()};
}

input_request roots(std::string_view key) {
  return {std::string{key}, "roots/list", "{}"};
}

/// The questions that have neither been answered nor refused; a call that has all goes on.
std::vector<input_request> open_questions(const served_call& call,
                                          std::vector<input_request> questions) {
  std::erase_if(questions, [&](const input_request& each) {
    return call.answers.contains(each.key) || call.refusals.contains(each.key);
  });
  return questions;
}

/// What came of a question, for people.
std::string outcome(const served_call& call, std::string_view key) {
  if (auto answer = call.answers.find(key); answer != call.answers.end()) {
    return answer->second;
  }
  auto refusal = call.refusals.find(key);
  return refusal == call.refusals.end() ? std::string{} : refusal->second;
}

/// Asks, then says what came of it.
served_step asks(const served_call& call, const std::vector<input_request>& questions,
                 std::string_view prefix) {
  served_step step;
  step.questions = open_questions(call, questions);
  if (!step.questions.empty()) {
    return step;
  }
  std::string text{prefix};
  bool failed = false;
  for (const auto& each : questions) {
    text += " " + outcome(call, each.key);
    failed = failed || call.refusals.contains(each.key);
  }
  return content(json::array({text_block(text)}), failed);
}

std::string argument(const served_call& call, std::string_view name) {
  auto arguments = json::parse(call.arguments, nullptr, false);
  if (!arguments.is_object()) {
    return {};
  }
  auto found = arguments.find(name);
  return found == arguments.end() || !found->is_string() ? std::string{}
                                                         : found->get<std::string>();
}

// Tools.

struct fixture {
  std::string_view name;
  std::string_view description;
  std::string_view schema; ///< of the arguments
  served_step (*next)(const served_call& call);
};

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

constexpr std::array tools = {
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

// Prompts.

constexpr std::array prompts = {
    fixture{"test_simple_prompt", "A prompt", "[]",
            [](const served_call&) {
              return messages({text_block("This is a simple prompt for testing.")});
            }},
    fixture{"test_prompt_with_arguments", "A prompt with arguments",
            R"([{"name":"arg1","required":true},{"name":"arg2","required":true}])",
            [](const served_call& call) {
              return messages({text_block(fmt::format(
                  "arg1='{}', arg2='{}'", argument(call, "arg1"), argument(call, "arg2")))});
            }},
    fixture{"test_prompt_with_embedded_resource", "A prompt with a resource",
            R"([{"name":"resourceUri","required":true}])",
            [](const served_call& call) {
              return messages({resource_block(argument(call, "resourceUri"), "text/plain",
                                              "Embedded resource content for testing."),
                               text_block("Please process the embedded resource above.")});
            }},
    fixture{"test_prompt_with_image", "A prompt with an image", "[]",
            [](const served_call&) {
              return messages({image_block(), text_block("Please analyze the image above.")});
            }},
    fixture{"test_input_required_result_prompt", "A prompt that asks", "[]",
            [](const served_call& call) {
              auto question = text_form("user_context", "What context should it use?", "context");
              served_step step;
              step.questions = open_questions(call, {question});
              return step.questions.empty()
                         ? messages({text_block("Context: " + outcome(call, "user_context"))})
                         : step;
            }},
};

template <class Fixtures>
const fixture* find(const Fixtures& fixtures, std::string_view name) {
  auto found = std::find_if(fixtures.begin(), fixtures.end(),
                            [&](const fixture& each) { return each.name == name; });
  return found == fixtures.end() ? nullptr : &*found;
}

const fixture* fixture_for(std::string_view method, std::string_view name) {
  return method == "tools/call"    ? find(tools, name)
         : method == "prompts/get" ? find(prompts, name)
                                   : nullptr;
}

// Resources.

struct text_resource {
  std::string_view uri;
  std::string_view name;
  std::string_view mime_type;
  std::string_view member; ///< text or blob
  std::string_view content;
};

constexpr std::array resources = {
    text_resource{"test://static-text", "static-text", "text/plain", "text",
                  "This is the content of the static text resource."},
    text_resource{"test://static-binary", "static-binary", "image/png", "blob", pixel},
    text_resource{"test://watched-resource", "watched-resource", "text/plain", "text",
                  "Watched resource content"},
};

constexpr std::string_view template_begin = "test://template/";
constexpr std::string_view template_end = "/data";

class fixtures : public served_things {
public:
  std::vector<std::string> entries(kind of) const override {
    std::vector<std::string> result;
    switch (of) {
    case kind::tools:
      for (const auto& each : tools) {
        result.push_back(fmt::format(R"({{"name":"{}","description":"{}","inputSchema":{}}})",
                                     each.name, each.description, each.schema));
      }
      break;
    case kind::prompts:
      for (const auto& each : prompts) {
        result.push_back(fmt::format(R"({{"name":"{}","description":"{}","arguments":{}}})",
                                     each.name, each.description, each.schema));
      }
      break;
    case kind::resources:
      for (const auto& each : resources) {
        result.push_back(fmt::format(R"({{"uri":"{}","name":"{}","mimeType":"{}"}})", each.uri,
                                     each.name, each.mime_type));
      }
      break;
    case kind::templates:
      result.emplace_back(R"({"uriTemplate":"test://template/{id}/data","name":"template",)"
                          R"("mimeType":"application/json"})");
      break;
    }
    return result;
  }

  bool knows(std::string_view method, std::string_view name) const override {
    return fixture_for(method, name) != nullptr;
  }

  served_step next(const served_call& call) const override {
    return fixture_for(call.method, call.name)->next(call);
  }

  std::string content(std::string_view uri) const override {
    for (const auto& each : resources) {
      if (each.uri == uri) {
        return fmt::format(R"({{"uri":"{}","mimeType":"{}","{}":"{}"}})", uri, each.mime_type,
                           each.member, each.content);
      }
    }
    if (uri.starts_with(template_begin) && uri.ends_with(template_end) &&
        uri.size() > template_begin.size() + template_end.size()) {
      auto id = uri.substr(template_begin.size(),
                           uri.size() - template_begin.size() - template_end.size());
      auto text = json{{"id", id}, {"templateTest", true}}.dump(-1, ' ', false,
                                                                json::error_handler_t::replace);
      return fmt::format(R"({{"uri":{},"mimeType":"application/json","text":{}}})", json_quote(uri),
                         json_quote(text));
    }
    return {};
  }

  std::vector<mirrored_parameter> mirrored(std::string_view tool) const override {
    if (tool == "test_header_parameter") {
      return {{"region", "Region"}};
    }
    return {};
  }
};

} // namespace

std::shared_ptr<const served_things> conformance_fixtures() {
  return std::make_shared<fixtures>();
}

} // namespace bulkhead
