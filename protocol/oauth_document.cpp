#include "protocol/oauth_document.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/json_scan.hpp"
#include "protocol/oauth_metadata.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_text = 8192;
constexpr std::size_t most_texts = 64;
constexpr std::size_t most_nodes = 10'000;
constexpr std::size_t deepest = 16;

bool is_sound(const nlohmann::json& value) {
  if (!value.is_string()) {
    return false;
  }
  const auto& text = value.get_ref<const std::string&>();
  return !text.empty() && text.size() <= longest_text &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

} // namespace

expected<nlohmann::json> read_oauth_document(std::string_view json, std::string_view what) {
  auto outline = scan_json(json, {largest_oauth_document, deepest, most_nodes});
  if (!outline) {
    return fail(outline.error().code, fmt::format("{}: {}", what, outline.error().message));
  }
  auto document = nlohmann::json::parse(json, nullptr, false);
  if (!document.is_object()) {
    return fail(errc::malformed, fmt::format("{} isn't a JSON object", what));
  }
  return document;
}

std::string text_member(const nlohmann::json& document, const char* key) {
  auto found = document.find(key);
  return found != document.end() && is_sound(*found) ? found->get<std::string>() : std::string{};
}

std::vector<std::string> text_members(const nlohmann::json& document, const char* key) {
  std::vector<std::string> result;
  auto found = document.find(key);
  if (found == document.end() || !found->is_array()) {
    return result;
  }
  for (const auto& value : *found) {
    if (is_sound(value) && result.size() < most_texts) {
      result.push_back(value.get<std::string>());
    }
  }
  return result;
}

bool true_member(const nlohmann::json& document, const char* key) {
  auto found = document.find(key);
  return found != document.end() && found->is_boolean() && found->get<bool>();
}

} // namespace bulkhead
