#include "protocol/image_profiles.hpp"

#include <gtest/gtest.h>

#include "protocol/settings.hpp"

namespace bulkhead {

namespace {

TEST(image_profiles, the_first_is_what_runs_take_by_default) {
  EXPECT_EQ(settings{}.image, image_profiles.front().reference);
}

TEST(image_profiles, are_found_by_name_and_by_reference) {
  for (const auto& each : image_profiles) {
    EXPECT_EQ(find_image_profile(each.name), &each);
    EXPECT_EQ(profile_of_image(each.reference), &each);
  }
  EXPECT_EQ(find_image_profile("Data"), nullptr);
  EXPECT_EQ(find_image_profile(""), nullptr);
  EXPECT_EQ(profile_of_image("localhost/other:data"), nullptr);
}

TEST(image_profiles, tell_how_an_image_is_built) {
  EXPECT_EQ(how_to_build_image("localhost/bulkhead-sandbox:latest"),
            "build it with: bulkhead image build");
  EXPECT_EQ(how_to_build_image("localhost/bulkhead-sandbox:data"),
            "build it with: bulkhead image build --profile data");
  EXPECT_EQ(how_to_build_image("localhost/mine:1"), "build it with: bulkhead image build");
  EXPECT_EQ(how_to_build_image("dta"),
            "build it with: bulkhead image build; MCP_BRIDGE_IMAGE takes an image reference, or a "
            "profile: minimal, data");
}

} // namespace

} // namespace bulkhead
