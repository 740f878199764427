#include "protocol/shown_artifacts.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

const std::string handle = "0123456789abcdef0123456789abcdef";

kept_artifact artifact(const std::string& name, const std::string& type, std::uint64_t bytes) {
  return {name, type, bytes, artifact_uri(handle, name), "/host/" + name, {}};
}

run_answer answer_with_all() {
  run_answer answer;
  answer.exit_code = 0;
  answer.out = {"hi", "", 2, 0};
  answer.artifacts = {artifact("plot.png", "image/png", 9), artifact("a b.csv", "text/csv", 5)};
  answer.artifacts[0].image = "\x89PNG\r\n\x1a\nx";
  return answer;
}

json rendered(const run_answer& answer, bool links = true,
              output_mode mode = output_mode::compact) {
  return json::parse(render_call_result(answer, mode, {}, links));
}

TEST(shown_artifacts, images_links_entries_and_lines) {
  const auto answer = answer_with_all();
  const auto result = rendered(answer);
  ASSERT_EQ(result["content"].size(), 3U);
  EXPECT_EQ(result["content"][0]["text"],
            "hi\n[artifact plot.png: image/png, 9 bytes: bulkhead://artifacts/" + handle +
                "/plot.png]\n[artifact a b.csv: text/csv, 5 bytes: bulkhead://artifacts/" + handle +
                "/a%20b.csv]");
  EXPECT_EQ(result["content"][1], (json{{"type", "image"},
                                        {"mimeType", "image/png"},
                                        {"data", encode_base64(answer.artifacts[0].image)}}));
  EXPECT_EQ(result["content"][2], (json{{"type", "resource_link"},
                                        {"uri", answer.artifacts[1].uri},
                                        {"name", "a b.csv"},
                                        {"mimeType", "text/csv"},
                                        {"size", 5}}));
  EXPECT_EQ(result["structuredContent"]["artifacts"], (json{{{"name", "plot.png"},
                                                             {"mimeType", "image/png"},
                                                             {"bytes", 9},
                                                             {"uri", answer.artifacts[0].uri}},
                                                            {{"name", "a b.csv"},
                                                             {"mimeType", "text/csv"},
                                                             {"bytes", 5},
                                                             {"uri", answer.artifacts[1].uri}}}));
  EXPECT_FALSE(result["structuredContent"].contains("truncated"));
}

TEST(shown_artifacts, old_revisions_know_no_links) {
  const auto result = rendered(answer_with_all(), false);
  ASSERT_EQ(result["content"].size(), 2U);
  EXPECT_EQ(result["content"][1]["type"], "image");
  EXPECT_NE(result["content"][0]["text"].get<std::string>().find("a%20b.csv"), std::string::npos);
}

TEST(shown_artifacts, what_is_lost_is_counted_with_its_cause) {
  auto answer = answer_with_all();
  answer.artifacts.clear();
  answer.artifacts_lost = {{3, "over 64 of a run"}, {1, "No space left on device"}};
  const auto result = rendered(answer);
  EXPECT_EQ(result["structuredContent"]["truncated"]["artifacts"],
            (json{{"lost", 4}, {"why", "3 (over 64 of a run); 1 (No space left on device)"}}));
  EXPECT_EQ(result["content"][0]["text"],
            "hi\n[artifacts not kept: 3 (over 64 of a run); 1 (No space left on device)]");
}

TEST(shown_artifacts, a_stream_that_is_cut_says_where_all_of_it_is) {
  run_answer answer;
  answer.out = {"head", "tail", 1000, 992};
  answer.err = {"h", "t", 500, 498};
  answer.out_kept = {output_uri(handle, stream_id::out), {1000, "/f", {}}};
  answer.err_kept = {output_uri(handle, stream_id::err), {100, "/g", "over 100 bytes"}};
  const auto result = rendered(answer);
  EXPECT_EQ(
      result["structuredContent"]["truncated"],
      (json{{"stdout", {{"totalBytes", 1000}, {"omittedBytes", 992}, {"uri", answer.out_kept.uri}}},
            {"stderr",
             {{"totalBytes", 500},
              {"omittedBytes", 498},
              {"uri", answer.err_kept.uri},
              {"keptBytes", 100},
              {"notKept", "over 100 bytes"}}}}));
  const std::string text = result["content"][0]["text"];
  EXPECT_NE(text.find("[stdout: all 1000 bytes: " + answer.out_kept.uri + "]"), std::string::npos);
  EXPECT_NE(text.find("the first 100 of 500 bytes"), std::string::npos);
  answer.out_kept = {{}, {0, {}, "No space left on device"}};
  EXPECT_NE(rendered(answer)["content"][0]["text"].get<std::string>().find(
                "[stdout: nothing but the above is kept: No space left on device]"),
            std::string::npos);
}

TEST(shown_artifacts, names_are_harmless_to_terminals_and_bounded) {
  run_answer answer;
  answer.out = {"hi", "", 2, 0};
  for (int i = 0; i < 64; ++i) {
    std::string name;
    while (name.size() < 250) {
      name += "\u202E";
    }
    answer.artifacts.push_back(artifact(name + std::to_string(i), "text/plain", 1));
  }
  for (const auto mode : {output_mode::compact, output_mode::toon, output_mode::json}) {
    const auto result = rendered(answer, true, mode);
    const std::string text = result["content"][0]["text"];
    EXPECT_LE(text.size() + result["structuredContent"].dump().size(), limits{}.answer_total);
    const auto shown = result["structuredContent"]["artifacts"].size();
    EXPECT_GT(shown, 5U);
    EXPECT_EQ(result["structuredContent"]["truncated"]["artifacts"]["notShown"], 64 - shown);
    EXPECT_EQ(result["content"].size(), 1 + shown);
    if (mode == output_mode::compact) {
      EXPECT_EQ(text.find("\u202E"), std::string::npos);
    }
  }
}

TEST(shown_artifacts, little_output_can_be_too_much_to_show) {
  run_answer answer;
  answer.out = {std::string(1000, 'x'), "", 1000, 0};
  EXPECT_TRUE(shows_all_captured(answer, output_mode::compact));
  answer.out = {std::string(8000, '\x01'), "", 8000, 0};
  EXPECT_FALSE(shows_all_captured(answer, output_mode::compact));
}

} // namespace
} // namespace bulkhead
