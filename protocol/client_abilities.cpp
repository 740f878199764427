#include "protocol/client_abilities.hpp"

#include "protocol/json_scan.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {

namespace {

void add(std::string& members, std::string_view more) {
  members += members.empty() ? "" : ",";
  members += more;
}

} // namespace

client_abilities read_client_abilities(std::string_view capabilities, std::string_view revision) {
  auto declared = outline_of_part(capabilities);
  client_abilities abilities;
  if (auto elicitation = declared.find("elicitation");
      is_json_object(elicitation) && revision >= "2025-06-18") {
    auto modes = outline_of_part(elicitation);
    bool url = is_json_object(modes.find("url"));
    abilities.elicitation_form = is_json_object(modes.find("form")) || !url;
    abilities.elicitation_url = url && revision >= "2025-11-25";
  }
  if (auto sampling = declared.find("sampling"); is_json_object(sampling)) {
    abilities.sampling = true;
    abilities.sampling_tools =
        is_json_object(outline_of_part(sampling).find("tools")) && revision >= "2025-11-25";
  }
  abilities.roots = is_json_object(declared.find("roots"));
  return abilities;
}

std::string lacking_capability(const client_abilities& abilities, std::string_view method,
                               std::string_view params) {
  if (method == "elicitation/create") {
    bool url = decode_json_string(outline_of_part(params).find("mode")) == "url";
    if (url) {
      return abilities.elicitation_url ? "" : R"({"elicitation":{"url":{}}})";
    }
    return abilities.elicitation_form ? "" : R"({"elicitation":{"form":{}}})";
  }
  if (method == "sampling/createMessage") {
    auto asked = outline_of_part(params);
    if (!asked.find("tools").empty() || !asked.find("toolChoice").empty()) {
      return abilities.sampling_tools ? "" : R"({"sampling":{"tools":{}}})";
    }
    return abilities.sampling ? "" : R"({"sampling":{}})";
  }
  if (method == "roots/list") {
    return abilities.roots ? "" : R"({"roots":{}})";
  }
  return "{}";
}

std::string to_json(const client_abilities& abilities) {
  std::string members;
  if (abilities.elicitation_form || abilities.elicitation_url) {
    std::string modes;
    if (abilities.elicitation_form) {
      add(modes, R"("form":{})");
    }
    if (abilities.elicitation_url) {
      add(modes, R"("url":{})");
    }
    add(members, R"("elicitation":{)" + modes + "}");
  }
  if (abilities.sampling) {
    add(members, abilities.sampling_tools ? R"("sampling":{"tools":{}})" : R"("sampling":{})");
  }
  if (abilities.roots) {
    add(members, R"("roots":{})");
  }
  return "{" + members + "}";
}

} // namespace bulkhead
