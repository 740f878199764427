// The encoder's examples that the TOON specification publishes (tests/protocol/toon_spec).

#include "protocol/toon.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using nlohmann::ordered_json;

/// An encoder may offer other delimiters and indentations (section 13.1); ours writes commas and
/// two spaces alone, the defaults.
bool is_our_notation(const ordered_json& example) {
  const auto options = example.value("options", ordered_json::object());
  return options.value("delimiter", ",") == "," && options.value("indentSize", 2) == 2;
}

TEST(toon_spec, every_published_example_in_our_notation) {
  int files = 0;
  int tried = 0;
  int in_others = 0;
  for (const auto& entry : std::filesystem::directory_iterator{BULKHEAD_TOON_SPEC}) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    ++files;
    std::ifstream file{entry.path()};
    const auto examples = ordered_json::parse(file);
    ASSERT_EQ(examples["category"], "encode") << entry.path();
    for (const auto& example : examples["tests"]) {
      if (!is_our_notation(example)) {
        ++in_others;
        continue;
      }
      ++tried;
      EXPECT_EQ(encode_toon(example["input"]), example["expected"].get<std::string>())
          << entry.path().filename() << ": " << example["name"];
    }
  }
  EXPECT_EQ(files, 9);
  EXPECT_EQ(tried, 150);
  EXPECT_EQ(in_others, 23);
}

} // namespace
} // namespace bulkhead
