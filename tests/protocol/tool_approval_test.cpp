#include "protocol/tool_approval.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/approval_question.hpp"
#include "protocol/client_info.hpp"
#include "protocol/content_digest.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/tool_documents.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

tool_document example() {
  tool_document tool;
  tool.name = "delete";
  tool.description = "deletes";
  tool.input_schema = R"({"type":"object"})";
  tool.annotations = R"({"destructiveHint":true})";
  return tool;
}

// The digests of "" and "abc", FIPS 180-2.
TEST(digest, is_sha_256) {
  EXPECT_EQ(content_digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(content_digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(tool_approval, the_definition_is_all_that_a_person_is_told) {
  auto digest = definition_digest(example());
  EXPECT_EQ(definition_digest(example()), digest);
  for (auto member : {&tool_document::name, &tool_document::description,
                      &tool_document::input_schema, &tool_document::annotations}) {
    auto changed = example();
    changed.*member += " ";
    EXPECT_NE(definition_digest(changed), digest);
  }
  auto moved = example();
  moved.description = "deletes" + moved.input_schema;
  moved.input_schema.clear();
  EXPECT_NE(definition_digest(moved), digest);
  auto same = example();
  same.alias = "delete_";
  EXPECT_EQ(definition_digest(same), digest);
}

TEST(tool_approval, survives_the_file) {
  std::vector<tool_approval> approvals;
  add_approval(approvals, {{"s", "t/\"x\"\n", "1"}, 5});
  add_approval(approvals, {{"s", "u", "2"}, 6});
  add_approval(approvals, {{"s", "u", "3"}, 7});
  auto read = parse_approvals(encode_approvals(approvals));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, approvals);
  EXPECT_EQ(read->size(), 2U);
  EXPECT_EQ(state_of(*read, {"s", "u", "3"}), approval_state::approved);
  EXPECT_EQ(state_of(*read, {"s", "u", "2"}), approval_state::changed);
  EXPECT_EQ(state_of(*read, {"S", "u", "3"}), approval_state::none);
  EXPECT_EQ(state_of(*read, {"s", "t", "1"}), approval_state::none);
}

TEST(tool_approval, a_damaged_file_approves_nothing) {
  EXPECT_TRUE(parse_approvals("")->empty());
  for (const auto* text :
       {"x", "[]", "{}", R"({"version":2,"approvals":[]})", R"({"version":1})",
        R"({"version":1,"approvals":[{}]})", R"({"version":1,"approvals":["a"]})",
        R"({"version":1,"approvals":[{"server":"s","tool":"t","definition":7,"at":1}]})",
        R"({"version":1,"approvals":[{"server":"s","tool":"t","definition":"7"}]})"}) {
    auto read = parse_approvals(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, errc::malformed);
  }
}

std::string message_of(std::string_view tool, std::string_view arguments, bool changed = false) {
  auto params = json::parse(approval_question("git\nhub", tool, arguments, "rule \"x\"", changed));
  EXPECT_EQ(params["requestedSchema"]["properties"]["answer"]["enum"],
            (json{"once", "always", "no"}));
  return params["message"].get<std::string>();
}

TEST(approval_question, no_argument_hides_behind_a_long_one) {
  auto arguments = R"({"junk":")" + std::string(5000, 'x') + R"(","path":"/etc"})";
  auto text = json::parse(approval_question("github", "rm", arguments, "rule", false))
                  .at("message")
                  .get<std::string>();
  EXPECT_NE(text.find("path: \"/etc\""), std::string::npos) << text;
  EXPECT_LT(text.size(), 1'000U);
  auto blank = json::parse(
      approval_question("github", "rm", "{" + std::string(3000, ' ') + "}", "rule", false));
  EXPECT_NE(blank.at("message").get<std::string>().find("3002 bytes"), std::string::npos);
  // Nor behind many.
  json many;
  for (int i = 0; i < 100; ++i) {
    many[std::to_string(i)] = std::string(100, 'y');
  }
  text = json::parse(approval_question("github", "rm", many.dump(), "rule", false))
             .at("message")
             .get<std::string>();
  EXPECT_NE(text.find("and 60 more that aren't shown"), std::string::npos) << text;
}

TEST(approval_question, shows_what_would_be_called) {
  auto text = message_of("delete", R"({"repo":"a/b"})");
  for (const auto* part : {"\"delete\"", "\"git hub\"", R"({"repo":"a/b"})", "rule \"x\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("changed"), std::string::npos);
  EXPECT_NE(message_of("delete", "{}", true).find("definition has changed"), std::string::npos);
}

TEST(approval_question, nothing_in_it_can_pretend) {
  auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  auto plain = lines(message_of("delete", "{}"));
  auto text = message_of("de\x1b[2Jlete\u202e\nSure", "{\n\"a\"\n:\n1}");
  EXPECT_EQ(lines(text), plain) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

TEST(approval_question, is_bounded_and_says_so) {
  std::string large = R"({"a":")" + std::string(1'000'000, 'x') + "\"}";
  auto text = message_of("delete", large);
  EXPECT_LT(text.size(), 4'000U);
  EXPECT_NE(text.find("1000008 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find(content_digest(large)), std::string::npos);
}

TEST(approval_question, only_a_clear_yes_is_one) {
  EXPECT_EQ(read_decision(R"({"action":"accept","content":{"answer":"once"}})"),
            approval_decision::once);
  EXPECT_EQ(read_decision(R"({"action":"accept","content":{"answer":"always"}})"),
            approval_decision::always);
  for (const auto* text :
       {R"({"action":"accept","content":{"answer":"no"}})", R"({"action":"accept"})",
        R"({"action":"accept","content":{}})", R"({"action":"accept","content":"once"})",
        R"({"action":"accept","content":{"answer":true}})",
        R"({"action":"accept","content":{"answer":["once"]}})",
        R"({"action":"decline","content":{"answer":"once"}})",
        R"({"action":"cancel","content":{"answer":"always"}})", R"({"content":{"answer":"once"}})",
        "{}", "[]", "", "yes"}) {
    EXPECT_EQ(read_decision(text), approval_decision::no) << text;
  }
}

client_info info_of(const std::string& method, const std::string& params) {
  auto text = R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}";
  scan_limits bounds{100'000};
  auto message = parse_rpc(text, bounds);
  EXPECT_TRUE(message);
  auto request = read_mcp_request(*message, bounds);
  EXPECT_TRUE(request);
  return read_client_info(*request);
}

TEST(client_info, is_read_in_both_eras) {
  client_info expected{"agent", "1.2"};
  EXPECT_EQ(info_of("initialize", R"({"protocolVersion":"2025-11-25",
                                      "clientInfo":{"name":"agent","version":"1.2"}})"),
            expected);
  EXPECT_EQ(info_of("tools/list", R"({"_meta":{
                "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":{},
                "io.modelcontextprotocol/clientInfo":{"name":"agent","version":"1.2"}}})"),
            expected);
}

TEST(client_info, is_bounded_and_may_be_missing) {
  EXPECT_EQ(info_of("initialize", R"({"protocolVersion":"x"})"), client_info{});
  EXPECT_EQ(info_of("initialize", R"({"clientInfo":7})"), client_info{});
  EXPECT_EQ(info_of("initialize", R"({"clientInfo":{"name":[],"version":{}}})"), client_info{});
  auto name =
      info_of("initialize", R"({"clientInfo":{"name":")" + std::string(9'999, 'x') + "\"}}").name;
  EXPECT_LT(name.size(), 200U);
}

} // namespace
} // namespace bulkhead
