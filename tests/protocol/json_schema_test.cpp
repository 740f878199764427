#include "protocol/json_schema.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using kind = schema_verdict::kind;

schema_verdict check(std::string_view schema, std::string_view value,
                     const schema_bounds& bounds = {}) {
  auto compiled = json_schema::compile(schema);
  EXPECT_TRUE(compiled) << compiled.error().message;
  return compiled ? compiled->check(value, bounds) : schema_verdict{kind::unchecked, "no schema"};
}

std::string complaint(std::string_view schema, std::string_view value) {
  auto verdict = check(schema, value);
  EXPECT_EQ(verdict.what, kind::misfits);
  return verdict.text;
}

const char* const issue = R"({
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1},
    "state": {"enum": ["open", "closed"]},
    "labels": {"type": "array", "items": {"type": "string"}},
    "milestone": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
    "assignee": {"$ref": "#/$defs/person"}
  },
  "required": ["title"],
  "additionalProperties": false,
  "$defs": {"person": {"type": "object", "properties": {"login": {"type": "string"}},
                       "required": ["login"]}}
})";

TEST(json_schema, what_fits_needs_no_words) {
  auto verdict = check(issue, R"({"title":"x","state":"open","labels":["a"],"milestone":null})");
  EXPECT_EQ(verdict.what, kind::fits);
  EXPECT_EQ(verdict.text, "");
}

TEST(json_schema, complaints_name_place_expectation_and_value) {
  EXPECT_EQ(complaint(issue, "{}"), "\"title\" is missing");
  EXPECT_EQ(complaint(issue, R"({"title":7})"), "title: expected string, got the integer 7");
  EXPECT_EQ(complaint(issue, R"({"title":"x","labels":["a",{"b":1}]})"),
            "labels[1]: expected string, got the object {\"b\":1}");
  EXPECT_EQ(complaint(issue, R"({"title":"x","assignee":{"name":"me"}})"),
            "assignee: \"login\" is missing");
  EXPECT_EQ(complaint(issue, R"({"title":""})"), "title: expected at least 1 characters, got 0");
}

TEST(json_schema, did_you_mean) {
  EXPECT_EQ(complaint(issue, R"({"title":"x","asignee":{"login":"me"}})"),
            "there is no \"asignee\"; did you mean \"assignee\"?");
  EXPECT_EQ(
      complaint(issue, R"({"title":"x","state":"colsed"})"),
      "state: expected one of \"open\", \"closed\", got \"colsed\"; did you mean \"closed\"?");
  EXPECT_EQ(complaint(issue, R"({"title":"x","zzz":1})"),
            "there is no \"zzz\"; expected are \"assignee\", \"labels\", \"milestone\", \"state\", "
            "\"title\"");
}

TEST(json_schema, of_alternatives_the_likely_one_is_told) {
  EXPECT_EQ(complaint(issue, R"({"title":"x","milestone":0})"),
            "milestone: expected a number of at least 1, got 0");
  EXPECT_EQ(complaint(issue, R"({"title":"x","milestone":"v1"})"),
            "milestone: expected integer or null, got the string \"v1\"");
}

TEST(json_schema, at_most_three_complaints_and_short_ones) {
  auto text = complaint(R"({"items":{"type":"string"}})",
                        "[1,2,3,4,{\"" + std::string(5000, 'x') + "\":1}]");
  EXPECT_EQ(text,
            "[0]: expected string, got the integer 1; [1]: expected string, got the integer 2; "
            "[2]: expected string, got the integer 3");
  auto long_one = complaint(R"({"type":"integer"})", '"' + std::string(5000, 'x') + '"');
  EXPECT_LT(long_one.size(), 200U);
  auto name = complaint(R"({"additionalProperties":{"type":"string"}})",
                        "{\"" + std::string(5000, 'x') + "\":1}");
  EXPECT_LT(name.size(), 300U);
  auto control = complaint(R"({"type":"integer"})", R"("\u001b[31m\u202e")");
  EXPECT_EQ(control.find('\x1b'), std::string::npos);
  EXPECT_EQ(control.find("\u202e"), std::string::npos);
}

TEST(json_schema, references_lead_nowhere_else) {
  for (const char* schema :
       {R"({"$ref":"https://example.com/schema.json"})", R"({"$ref":"#/$defs/none"})",
        R"({"$ref":"file:///etc/passwd"})", R"({"properties":{"a":{"$ref":"other.json#/x"}}})",
        R"({"$schema":"https://example.com/dialect"})"}) {
    auto compiled = json_schema::compile(schema);
    ASSERT_FALSE(compiled) << schema;
    EXPECT_EQ(compiled.error().code, errc::not_found);
  }
}

TEST(json_schema, no_schema) {
  for (const char* text :
       {"", "7", R"({"properties":{"a":"string"}})", "{", R"({"not":[]})", R"({"not":"x"})",
        R"({"type":"object","unevaluatedProperties":"false"})"}) {
    auto compiled = json_schema::compile(text);
    ASSERT_FALSE(compiled) << text;
    EXPECT_EQ(compiled.error().code, errc::malformed) << text;
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) {
    deep += R"({"not":)";
  }
  deep += "{}" + std::string(200, '}');
  auto compiled = json_schema::compile(deep);
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, errc::too_large);
}

TEST(json_schema, keywords_of_wrong_types_are_not_checked) {
  const char* schema = R"({"type":5,"enum":1,"required":"a","allOf":{"a":{"not":{}}},"anyOf":3,
    "minimum":"x","maxLength":[],"pattern":7,"properties":[],"dependencies":4,
    "dependentRequired":{"a":7},"patternProperties":[1],"uniqueItems":"yes","maxItems":null})";
  for (const char* value : {R"({"a":1})", "5", R"("text")", "[1,1]", "null"}) {
    EXPECT_EQ(check(schema, value).what, kind::fits) << value << check(schema, value).text;
  }
}

TEST(json_schema, what_leads_back_to_itself_is_not_checked_for_ever) {
  auto verdict = check(R"({"$ref":"#"})", "1");
  EXPECT_EQ(verdict.what, kind::unchecked);
  EXPECT_NE(verdict.text.find("back to itself"), std::string::npos);
  // Each level doubles the work of the one before.
  std::string doubling = R"({"$defs":{"a0":{"type":"string"})";
  for (int i = 1; i < 60; ++i) {
    auto before = "{\"$ref\":\"#/$defs/a" + std::to_string(i - 1) + "\"}";
    doubling += ",\"a" + std::to_string(i) + "\":{\"anyOf\":[" + before + "," + before + "]}";
  }
  doubling += R"(},"$ref":"#/$defs/a59"})";
  verdict = check(doubling, "1", {.steps = 10'000});
  EXPECT_EQ(verdict.what, kind::unchecked);
  EXPECT_NE(verdict.text.find("too many steps"), std::string::npos);
}

TEST(json_schema, patterns_take_linear_time_or_are_not_checked) {
  auto text = '"' + std::string(100'000, 'a') + "!\"";
  EXPECT_EQ(check(R"({"pattern":"^(a+)+$"})", text).what, kind::misfits);
  EXPECT_EQ(check(R"({"pattern":"^(?=x)y"})", R"("z")").what, kind::fits);
  EXPECT_EQ(check(R"({"pattern":"(a)\\1"})", R"("z")").what, kind::fits);
  EXPECT_EQ(check(R"({"pattern":"((a{1,1000}){1,1000}){1,1000}"})", R"("z")").what, kind::fits);
  EXPECT_EQ(check(R"({"pattern":"^\\u00e4$"})", R"("ä")").what, kind::fits);
  EXPECT_EQ(check(R"({"pattern":"^\\u00e4$"})", R"("a")").what, kind::misfits);
  // A name that such a pattern may have meant is no unknown one.
  EXPECT_EQ(
      check(R"s({"patternProperties":{"^(?!x)":{}},"additionalProperties":false})s", R"({"y":1})")
          .what,
      kind::fits);
}

TEST(json_schema, numbers_that_no_double_holds) {
  EXPECT_EQ(check(R"({"type":"number"})", "1e400").what, kind::unchecked);
  EXPECT_FALSE(json_schema::compile(R"({"maximum":1e400})"));
  EXPECT_EQ(check(R"({"multipleOf":0.01})", "4.35").what, kind::fits);
  EXPECT_EQ(check(R"({"multipleOf":0.01})", "4.355").what, kind::misfits);
  EXPECT_EQ(check(R"({"multipleOf":0})", "4").what, kind::misfits);
  EXPECT_EQ(check(R"({"multipleOf":18446744073709551615})", "-9223372036854775808").what,
            kind::misfits);
  EXPECT_EQ(check(R"({"multipleOf":3})", "-9").what, kind::fits);
  EXPECT_EQ(check(R"({"multipleOf":3})", "-8").what, kind::misfits);
}

TEST(json_schema, what_servers_wrote_before_2020_12) {
  EXPECT_EQ(check(R"({"items":[{"type":"string"}]})", "[1]").what, kind::misfits);
  EXPECT_EQ(check(R"({"dependencies":{"a":["b"]}})", R"({"a":1})").what, kind::misfits);
  EXPECT_EQ(check(R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/x",
                      "definitions":{"x":{"type":"object"}}})",
                  "1")
                .what,
            kind::misfits);
}

} // namespace
} // namespace bulkhead
