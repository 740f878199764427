#include "protocol/image_profiles.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead {

namespace {

template <class Wanted>
const image_profile* find_profile(Wanted wanted) {
  const auto* found = std::find_if(image_profiles.begin(), image_profiles.end(), wanted);
  return found == image_profiles.end() ? nullptr : found;
}

} // namespace

const image_profile* find_image_profile(std::string_view name) {
  return find_profile([name](const image_profile& each) { return each.name == name; });
}

const image_profile* profile_of_image(std::string_view reference) {
  return find_profile(
      [reference](const image_profile& each) { return each.reference == reference; });
}

std::string how_to_build_image(std::string_view reference) {
  const auto* profile = profile_of_image(reference);
  std::string result = "build it with: bulkhead image build";
  if (profile != nullptr && profile != image_profiles.data()) {
    result += fmt::format(" --profile {}", profile->name);
  }
  if (reference.find_first_of("/:") == std::string_view::npos) {
    result += "; MCP_BRIDGE_IMAGE takes an image reference, or a profile:";
    for (const auto& each : image_profiles) {
      result += fmt::format("{} {}", &each == image_profiles.data() ? "" : ",", each.name);
    }
  }
  return result;
}

} // namespace bulkhead
