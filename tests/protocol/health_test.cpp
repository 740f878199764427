#include "protocol/health.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

json body_of(const health_report& report) {
  return json::parse(encode_health(report).body);
}

TEST(health, nothing_wrong_is_200) {
  health_report report{{{"actors", true, "fine"}, {"disk", true}}};
  auto answer = encode_health(report);
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.fields[0], (http_field{"Content-Type", "application/json"}));
  EXPECT_EQ(json::parse(answer.body),
            (json{{"status", "ok"},
                  {"checks",
                   {{{"what", "actors"}, {"status", "ok"}, {"detail", "fine"}},
                    {{"what", "disk"}, {"status", "ok"}}}}}));
  EXPECT_EQ(encode_health({}).status, 200U);
}

TEST(health, what_is_wrong_comes_first_with_its_remedy) {
  health_report report{{{"actors", true}, {"disk", false, "it is full", "make room"}}};
  auto answer = encode_health(report);
  EXPECT_EQ(answer.status, 503U);
  auto body = json::parse(answer.body);
  EXPECT_EQ(body["status"], "failing");
  EXPECT_EQ(body["checks"][0]["what"], "disk");
  EXPECT_EQ(body["checks"][0]["status"], "failing");
  EXPECT_EQ(body["checks"][0]["remedy"], "make room");
}

TEST(health, what_not_all_need_degrades_only) {
  health_report report{{{"runtime of alpha", false, "no image", "pull it", false}}};
  EXPECT_EQ(encode_health(report).status, 200U);
  EXPECT_EQ(body_of(report)["status"], "degraded");
  report.checks.push_back({"disk", false});
  EXPECT_EQ(encode_health(report).status, 503U);
}

TEST(health, things_of_a_kind_fail_together_only) {
  std::vector<health_check> some = {{"a", true}, {"b", false}};
  judge_together(some);
  EXPECT_EQ((health_report{some}.result()), health_report::verdict::degraded);
  std::vector<health_check> all = {{"a", false}, {"b", false}};
  judge_together(all);
  EXPECT_EQ((health_report{all}.result()), health_report::verdict::failing);
}

TEST(health, texts_of_any_bytes_do_no_harm) {
  health_report report{{{"disk", false, "a\xff\"\n", {}}}};
  EXPECT_EQ(body_of(report)["checks"][0]["detail"], "a\xef\xbf\xbd\"\n");
}

TEST(health, a_folder_needs_room_for_bytes_and_files) {
  folder_state folder{"/state", {}, least_room, least_files, true};
  EXPECT_TRUE(check_folder("state folder", folder).good);
  auto bad = folder;
  bad.free_bytes = least_room - 1;
  EXPECT_FALSE(check_folder("state folder", bad).good);
  EXPECT_NE(check_folder("state folder", bad).detail.find("63 MiB are free"), std::string::npos);
  bad = folder;
  bad.free_files = least_files - 1;
  EXPECT_FALSE(check_folder("state folder", bad).good);
  bad.counts_files = false;
  EXPECT_TRUE(check_folder("state folder", bad).good);
  bad = folder;
  bad.failure = "Read-only file system";
  auto check = check_folder("state folder", bad);
  EXPECT_FALSE(check.good);
  EXPECT_NE(check.detail.find("/state: Read-only file system"), std::string::npos);
  EXPECT_FALSE(check.remedy.empty());
}

TEST(health, a_configuration_that_is_broken_now_degrades) {
  EXPECT_TRUE(check_configuration("/b.toml", {}).good);
  auto check = check_configuration("/b.toml", {{errc::malformed, "/b.toml:3: no value"},
                                               {errc::invalid_argument, "/b.toml:4: unknown key"}});
  EXPECT_EQ(health_report{{check}}.result(), health_report::verdict::degraded);
  EXPECT_EQ(check.detail,
            "/b.toml:3: no value (and 1 more); what was read before counts meanwhile");
  EXPECT_NE(check.remedy.find("/b.toml"), std::string::npos);
}

TEST(health, definitions_with_errors_degrade) {
  EXPECT_TRUE(check_definitions("x", {}).good);
  EXPECT_TRUE(check_definitions("x", {{"/s.json", "", "worth a word", problem_kind::remark}}).good);
  auto check = check_definitions("servers of ann", {{"/s.json", "", "a", problem_kind::remark},
                                                    {"/s.json", "", "no JSON", {}},
                                                    {"/t.json", "git", "no command", {}}});
  EXPECT_EQ(check.what, "servers of ann");
  EXPECT_EQ(health_report{{check}}.result(), health_report::verdict::degraded);
  EXPECT_NE(check.detail.find("/s.json"), std::string::npos);
  EXPECT_NE(check.detail.find("no JSON (and 1 more)"), std::string::npos);
  EXPECT_NE(check.remedy.find("--tenant"), std::string::npos);
}

TEST(health, an_issuer_that_cannot_be_reached_degrades) {
  EXPECT_TRUE(check_issuer("https://a.example", "", true).good);
  EXPECT_TRUE(check_issuer("https://a.example", "", false).good) << "it has just begun";
  auto check = check_issuer("https://a.example", "no such host", false);
  EXPECT_EQ(health_report{{check}}.result(), health_report::verdict::degraded);
  EXPECT_EQ(check.detail, "no such host; none of its access tokens is believed");
  EXPECT_NE(check_issuer("https://a.example", "no such host", true).detail.find("meanwhile"),
            std::string::npos);
}

} // namespace
} // namespace bulkhead
