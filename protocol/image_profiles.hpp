#pragma once

#include <array>
#include <string>
#include <string_view>

namespace bulkhead {

/// A kind of sandbox image that `bulkhead image build` makes, by the name that users give it.
struct image_profile {
  std::string_view name;
  std::string_view reference; ///< its tag in the engine's store
};

/// All of them, the default first. deploy/image/build-image.sh says what is in each.
constexpr std::array<image_profile, 2> image_profiles = {{
    {"minimal", "localhost/bulkhead-sandbox:latest"},
    {"data", "localhost/bulkhead-sandbox:data"},
}};

/// The profile of a name, or nullptr.
const image_profile* find_image_profile(std::string_view name);

/// The profile that an image reference belongs to, or nullptr for any other image.
const image_profile* profile_of_image(std::string_view reference);

/// What a user can do about an image that isn't there: the command that builds it, and for what may
/// be a misspelt profile the profiles' names.
std::string how_to_build_image(std::string_view reference);

} // namespace bulkhead
