#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/run_answer.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

bool is_of(const json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "integer" ? value.is_number_integer()
                             : false;
}

/// Checks by the keywords that the schema has; others would fail the test.
void expect_valid(const json& value, const json& schema, const std::string& where) {
  for (const auto& [keyword, rule] : schema.items()) {
    if (keyword == "type") {
      EXPECT_TRUE(is_of(value, rule)) << where << ": " << value;
    } else if (keyword == "enum") {
      EXPECT_NE(std::find(rule.begin(), rule.end(), value), rule.end()) << where << ": " << value;
    } else if (keyword == "minimum") {
      EXPECT_GE(value, rule) << where;
    } else if (keyword == "required") {
      for (const auto& name : rule) {
        EXPECT_TRUE(value.contains(name)) << where << ": " << name;
      }
    } else if (keyword == "items") {
      for (const auto& item : value) {
        expect_valid(item, rule, where + "[]");
      }
    } else if (keyword == "properties") {
      for (const auto& [name, member] : value.items()) {
        // All that there is has a description of its own.
        ASSERT_TRUE(rule.contains(name)) << where << ": " << name;
        expect_valid(member, rule[name], where + "." + name);
      }
    } else {
      EXPECT_EQ(keyword, "description") << where;
    }
  }
}

void expect_valid(const run_answer& answer) {
  expect_valid(json::parse(render_structured(answer)), json::parse(run_python_output_schema()),
               "structuredContent");
}

run_answer full() {
  run_answer answer;
  answer.status = run_status::timeout;
  answer.exit_code = -9;
  answer.out = {"head", "tail", 100, 92};
  answer.out_kept = {"bulkhead://output/x/stdout", {50, "/f", "no room"}};
  answer.err = {"e", {}, 1, 0};
  answer.result_json = "[1]";
  answer.exception = guest_exception{"ValueError", "bad", "Traceback"};
  answer.failure = error{errc::timeout, "too slow"};
  answer.servers = {"a", "b"};
  answer.session = "s";
  answer.artifacts = {{"a", "text/plain", 1, "bulkhead://artifacts/x/a", "/f", {}}};
  answer.artifacts_lost = {{2, "too many"}};
  return answer;
}

TEST(run_python_output, every_status_is_in_the_schema) {
  for (auto status :
       {run_status::success, run_status::error, run_status::timeout, run_status::out_of_memory,
        run_status::cancelled, run_status::validation_error, run_status::unavailable,
        run_status::session_lost}) {
    run_answer answer;
    answer.status = status;
    expect_valid(answer);
  }
}

TEST(run_python_output, all_that_an_answer_may_have_is_in_the_schema) {
  expect_valid(full());
}

TEST(run_python_output, a_result_may_be_anything) {
  for (const auto* value : {"null", "1", "\"x\"", "{\"a\":[]}", "true"}) {
    run_answer answer;
    answer.result_json = value;
    expect_valid(answer);
  }
  run_answer answer;
  answer.result_repr = "<object>";
  expect_valid(answer);
}

} // namespace
} // namespace bulkhead
