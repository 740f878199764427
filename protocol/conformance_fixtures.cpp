#include "protocol/conformance_fixtures.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/conformance_steps.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

using namespace conformance;

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
  return method == "tools/call"    ? find(tools(), name)
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
      for (const auto& each : tools()) {
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
