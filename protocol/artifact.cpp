#include "protocol/artifact.hpp"

#include <algorithm>
#include <array>

#include "protocol/ascii.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view charset = "; charset=utf-8";

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// RFC 6838, section 4.2: restricted-name.
bool is_restricted_name(std::string_view name) {
  constexpr std::string_view others = "!#$&-^_.+";
  return !name.empty() && is_alphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
         });
}

bool has_control_characters(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto byte = static_cast<unsigned char>(text[at]);
    // C1 controls, U+0080 to U+009F, are C2 80 to C2 9F in UTF-8.
    bool c1 =
        byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || c1) {
      return true;
    }
  }
  return false;
}

} // namespace

bool is_artifact_name(std::string_view name) {
  return !name.empty() && name.size() <= artifact_name_limit && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && is_utf8(name) && !has_control_characters(name);
}

bool is_mime_type(std::string_view text) {
  if (text.size() > mime_type_limit) {
    return false;
  }
  if (text.size() > charset.size() &&
      lower_case(text.substr(text.size() - charset.size())) == charset) {
    text.remove_suffix(charset.size());
  }
  const auto slash = text.find('/');
  return slash != std::string_view::npos && is_restricted_name(text.substr(0, slash)) &&
         is_restricted_name(text.substr(slash + 1));
}

bool is_shown_image(std::string_view mime_type, std::string_view bytes) {
  using namespace std::string_view_literals;
  struct kind {
    std::string_view mime_type;
    std::string_view magic;
  };
  constexpr std::array<kind, 4> kinds = {{{"image/png"sv, "\x89PNG\r\n\x1a\n"sv},
                                          {"image/jpeg"sv, "\xFF\xD8\xFF"sv},
                                          {"image/gif"sv, "GIF8"sv},
                                          {"image/webp"sv, "RIFF"sv}}};
  const auto claimed = lower_case(mime_type);
  return std::any_of(kinds.begin(), kinds.end(), [&](const kind& each) {
    return claimed == each.mime_type && bytes.substr(0, each.magic.size()) == each.magic &&
           (each.magic != "RIFF"sv || (bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP"sv));
  });
}

} // namespace bulkhead
