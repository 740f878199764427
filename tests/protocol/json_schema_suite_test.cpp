// The JSON Schema test suite, as Debian's packages json-schema-test-suite (draft 7) and
// libtest-json-schema-acceptance-perl (a newer copy, for 2020-12 too) bring it.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/json_schema.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

const std::string old_suite = "/usr/share/json-schema-test-suite/tests/";
const std::string new_suite = "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests/";

/// Left out are groups of tests, as "file: description", or all of a file, as "file", whose schemas
/// refer to documents outside themselves: nothing is fetched, so that those must be told as not to
/// be found. Anything else runs.
using left_out = std::set<std::string>;

const left_out outside_draft_7 = {
    // Documents on a server of the suite's.
    "refRemote",
    // The schema of schemas.
    "definitions: valid definition",
    "definitions: invalid definition",
    "definitions: validate definition against metaschema",
    "ref: remote ref, containing refs itself",
};

const left_out outside_draft_2020_12 = {
    // Documents on a server of the suite's; the last has a dialect of its own there.
    "refRemote",
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first",
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first",
    "dynamicRef: strict-tree schema, guards against misspelled properties",
    "dynamicRef: tests for implementation dynamic anchor and reference link",
    "vocabulary: schema that uses custom metaschema with with no validation vocabulary",
    "vocabulary: ignore unrecognized optional vocabulary",
    // The schema of schemas.
    "anchor: invalid anchors",
    "defs: validate definition against metaschema",
    "id: Invalid use of fragments in location-independent $id",
    "id: Valid use of empty fragments in location-independent $id",
    "id: Unnormalized $ids are allowed but discouraged",
    "ref: URN base URI with f-component",
    "ref: remote ref, containing refs itself",
};

struct tally {
  std::size_t tests = 0;
  std::size_t groups_left_out = 0;
};

std::ostream& operator<<(std::ostream& out, const tally& count) {
  return out << count.tests << " tests, " << count.groups_left_out << " groups left out";
}

void run_group(const std::string& name, const json& group, schema_dialect dialect,
               const left_out& outside, tally& count) {
  auto schema = json_schema::compile(group.at("schema").dump(), dialect);
  if (outside.contains(name) || outside.contains(name.substr(0, name.find(':')))) {
    ++count.groups_left_out;
    ASSERT_FALSE(schema) << name << " needn't be left out";
    EXPECT_EQ(schema.error().code, errc::not_found) << name;
    return;
  }
  ASSERT_TRUE(schema) << name << ": " << schema.error().message;
  for (const auto& test : group.at("tests")) {
    auto verdict = schema->check(test.at("data").dump());
    auto wanted =
        test.at("valid").get<bool>() ? schema_verdict::kind::fits : schema_verdict::kind::misfits;
    EXPECT_EQ(verdict.what, wanted) << name << ": " << test.at("description") << ": "
                                    << test.at("data") << ": " << verdict.text;
    EXPECT_EQ(verdict.text.empty(), wanted == schema_verdict::kind::fits) << verdict.text;
    ++count.tests;
  }
}

tally run_suite(const std::string& folder, schema_dialect dialect, const left_out& outside) {
  tally count;
  if (!std::filesystem::is_directory(folder)) {
    ADD_FAILURE() << folder << " is missing: deploy/setup.sh --tests installs it";
    return count;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") {
      std::ifstream in(entry.path());
      for (const auto& group : json::parse(in)) {
        run_group(entry.path().stem().string() + ": " + group.at("description").get<std::string>(),
                  group, dialect, outside, count);
      }
    }
  }
  std::cout << folder << ": " << count << "\n";
  return count;
}

TEST(json_schema_suite, draft_7) {
  auto count = run_suite(old_suite + "draft7", schema_dialect::draft_07, outside_draft_7);
  EXPECT_GT(count.tests, 400U);
}

TEST(json_schema_suite, draft_7_in_a_newer_copy) {
  auto count = run_suite(new_suite + "draft7", schema_dialect::draft_07, outside_draft_7);
  EXPECT_GT(count.tests, 800U);
}

TEST(json_schema_suite, draft_2020_12) {
  auto count =
      run_suite(new_suite + "draft2020-12", schema_dialect::draft_2020_12, outside_draft_2020_12);
  EXPECT_GT(count.tests, 1000U);
}

} // namespace
} // namespace bulkhead
