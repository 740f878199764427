#include "protocol/conformance_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead::conformance {

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

served_step content(const json& blocks, bool failed) {
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

served_step logs(std::string_view text, std::chrono::milliseconds pause) {
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

input_request form(std::string_view key, std::string_view message, json properties, json required) {
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

std::vector<input_request> open_questions(const served_call& call,
                                          std::vector<input_request> questions) {
  std::erase_if(questions, [&](const input_request& each) {
    return call.answers.contains(each.key) || call.refusals.contains(each.key);
  });
  return questions;
}

std::string outcome(const served_call& call, std::string_view key) {
  if (auto answer = call.answers.find(key); answer != call.answers.end()) {
    return answer->second;
  }
  auto refusal = call.refusals.find(key);
  return refusal == call.refusals.end() ? std::string{} : refusal->second;
}

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

} // namespace bulkhead::conformance
