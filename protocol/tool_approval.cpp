#include "protocol/tool_approval.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "protocol/content_digest.hpp"
#include "protocol/tool_documents.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr int file_version = 1;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

std::string definition_digest(const tool_document& tool) {
  // As an array of texts, so that nothing can move from one to the next.
  return content_digest(
      text_of(json::array({tool.name, tool.description, tool.input_schema, tool.annotations})));
}

expected<std::vector<tool_approval>> parse_approvals(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  auto malformed = [](const char* why) { return fail(errc::malformed, why); };
  auto document = json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("version", json{}) != json(file_version)) {
    return malformed("is no file of approvals that this version of Bulkhead wrote");
  }
  auto found = document.find("approvals");
  if (found == document.end() || !found->is_array()) {
    return malformed("has no approvals");
  }
  std::vector<tool_approval> result;
  for (const auto& each : *found) {
    auto has_text = [&](const char* key) {
      auto member = each.find(key);
      return member != each.end() && member->is_string();
    };
    if (!each.is_object() || !has_text("server") || !has_text("tool") || !has_text("definition") ||
        !each.value("at", json{}).is_number_integer()) {
      return malformed("has an approval that isn't whole");
    }
    result.push_back({{each["server"].get<std::string>(), each["tool"].get<std::string>(),
                       each["definition"].get<std::string>()},
                      each["at"].get<std::int64_t>()});
  }
  return result;
}

std::string encode_approvals(const std::vector<tool_approval>& approvals) {
  json document{{"version", file_version}, {"approvals", json::array()}};
  for (const auto& each : approvals) {
    document["approvals"].push_back({{"server", each.what.server},
                                     {"tool", each.what.tool},
                                     {"definition", each.what.definition},
                                     {"at", each.at}});
  }
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

approval_state state_of(const std::vector<tool_approval>& approvals, const tool_identity& what) {
  for (const auto& each : approvals) {
    if (each.what.server == what.server && each.what.tool == what.tool) {
      return each.what == what ? approval_state::approved : approval_state::changed;
    }
  }
  return approval_state::none;
}

void add_approval(std::vector<tool_approval>& approvals, tool_approval made) {
  std::erase_if(approvals, [&](const tool_approval& each) {
    return each.what.server == made.what.server && each.what.tool == made.what.tool;
  });
  approvals.push_back(std::move(made));
}

} // namespace bulkhead
