#include "protocol/run_python.hpp"

#include "protocol/edit_distance.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

class run_python : public ::testing::Test {
protected:
  run_python() {
    for (const auto* name : {"github", "memory", "my-server", "secret"}) {
      server_entry entry;
      entry.name = name;
      entry.alias = python_identifier(name);
      catalogue.servers.push_back(entry);
    }
    catalogue.rules.deny = {"sec*"};
  }

  expected<python_call> read(const json& arguments) {
    text = arguments.dump();
    return read_python_call(text, catalogue, config, bounds);
  }

  /// The error's code and text; both must be as expected.
  void expect_refused(const json& arguments, errc code, std::vector<std::string> words) {
    auto result = read(arguments);
    ASSERT_FALSE(result) << arguments;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    for (const auto& word : words) {
      EXPECT_NE(result.error().message.find(word), std::string::npos)
          << "no \"" << word << "\" in: " << result.error().message;
    }
  }

  server_catalogue catalogue;
  settings config;
  limits bounds;
  std::string text;
};

TEST_F(run_python, what_a_model_sees_is_small) {
  config.timeout = std::chrono::milliseconds{86'399'999};
  config.max_timeout = std::chrono::milliseconds{86'399'999};
  auto tool = json::parse(run_python_definition(config));
  auto seen = tool["name"].dump().size() + tool["description"].dump().size() +
              tool["inputSchema"].dump().size();
  EXPECT_LE(seen, 1400U);
  EXPECT_FALSE(tool.contains("outputSchema"));
  EXPECT_EQ(tool["_meta"]["bulkhead/outputSchema"], output_schema_uri);
  EXPECT_EQ(tool["name"], "run_python");
}

TEST_F(run_python, the_description_tells_how_to_go_on) {
  auto description = json::parse(run_python_definition(config))["description"].get<std::string>();
  for (const auto* word : {"`servers`", "await", "mcp.runtime", "discovered_servers",
                           "search_tool_docs", "bulkhead://capabilities", "network", "print"}) {
    auto found = description.find(word) != std::string::npos ||
                 (std::string{word} == "mcp.runtime" &&
                  description.find("from mcp import runtime") != std::string::npos);
    EXPECT_TRUE(found) << word;
  }
}

TEST_F(run_python, the_output_schema_is_there_on_request) {
  config.output_schema = true;
  auto tool = json::parse(run_python_definition(config));
  EXPECT_EQ(tool["outputSchema"], json::parse(run_python_output_schema()));
  EXPECT_EQ(tool["outputSchema"]["type"], "object");
}

TEST_F(run_python, the_schema_says_what_is_taken) {
  auto schema = json::parse(run_python_definition(config))["inputSchema"];
  EXPECT_EQ(schema["type"], "object");
  EXPECT_EQ(schema["required"], json::array({"code"}));
  for (const auto* name : {"code", "servers", "files", "timeout", "session", "reset"}) {
    EXPECT_TRUE(schema["properties"].contains(name)) << name;
  }
  EXPECT_EQ(schema["properties"]["timeout"]["maximum"], 120);
  EXPECT_EQ(schema["additionalProperties"], false);
}

TEST_F(run_python, files_come_along) {
  auto result = read({{"code", "1"}, {"files", {{{"path", "a/b"}, {"text", "x"}}}}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->files, (std::vector<input_file>{{"a/b", "x"}}));
  expect_refused({{"code", "1"}, {"files", {{{"path", "../b"}, {"text", "x"}}}}},
                 errc::invalid_argument, {"files", "../b"});
}

TEST_F(run_python, a_session_and_its_reset) {
  auto fresh = read({{"code", "1"}, {"session", "new"}});
  ASSERT_TRUE(fresh) << fresh.error().message;
  EXPECT_EQ(fresh->session, "new");
  EXPECT_FALSE(fresh->reset);
  auto again = read({{"code", "1"}, {"session", "0123"}, {"reset", true}});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->session, "0123");
  EXPECT_TRUE(again->reset);
  auto none = read({{"code", "1"}, {"session", nullptr}, {"reset", nullptr}});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->session, "");
}

TEST_F(run_python, unusable_sessions_are_refused) {
  expect_refused({{"code", "1"}, {"session", 7}}, errc::invalid_argument,
                 {"session", "\"new\"", "a number"});
  expect_refused({{"code", "1"}, {"session", ""}}, errc::invalid_argument, {"session is empty"});
  expect_refused({{"code", "1"}, {"reset", true}}, errc::invalid_argument,
                 {"reset needs a session"});
  expect_refused({{"code", "1"}, {"session", "x"}, {"reset", "yes"}}, errc::invalid_argument,
                 {"reset must be true or false", "a string"});
}

TEST_F(run_python, defaults) {
  auto result = read({{"code", "print(1)"}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result, (python_call{"print(1)", {}, std::chrono::milliseconds{30'000}, {}, false}));
}

TEST_F(run_python, null_means_not_given) {
  auto result = read({{"code", "1"}, {"servers", nullptr}, {"timeout", nullptr}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->servers.empty());
  EXPECT_EQ(result->timeout, config.timeout);
}

TEST_F(run_python, servers_by_name_or_alias_once_each) {
  auto result = read({{"code", "1"}, {"servers", {"my_server", "memory", "my-server", "memory"}}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->servers, (std::vector<std::string>{"memory", "my-server"}));
}

TEST_F(run_python, server_names_with_json_in_them) {
  catalogue.servers[0].name = R"(a,]"[{\ b)";
  auto result = read({{"code", "1"}, {"servers", {catalogue.servers[0].name, "memory"}}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->servers.size(), 2U);
}

TEST_F(run_python, white_space_between_servers) {
  text = "{ \"code\" : \"1\" , \"servers\" : [ \"memory\" ,\n\t\"github\" ] }";
  auto result = read_python_call(text, catalogue, config, bounds);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->servers.size(), 2U);
  text = "{\"code\":\"1\",\"servers\":[ ]}";
  result = read_python_call(text, catalogue, config, bounds);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->servers.empty());
}

TEST_F(run_python, timeouts_are_seconds) {
  EXPECT_EQ(read({{"code", "1"}, {"timeout", 1.5}})->timeout, std::chrono::milliseconds{1500});
  EXPECT_EQ(read({{"code", "1"}, {"timeout", 120}})->timeout, std::chrono::milliseconds{120'000});
  EXPECT_EQ(read({{"code", "1"}, {"timeout", 1e-9}})->timeout, std::chrono::milliseconds{1});
}

TEST_F(run_python, code_is_required) {
  auto none = read_python_call({}, catalogue, config, bounds);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("code is missing"), std::string::npos);
  expect_refused(json::object(), errc::invalid_argument, {"code is missing"});
  expect_refused({{"code", ""}}, errc::invalid_argument, {"code is empty"});
  expect_refused({{"code", " \n\t"}}, errc::invalid_argument, {"code is empty"});
  expect_refused({{"code", 5}}, errc::invalid_argument, {"code must be a string", "a number"});
  expect_refused({{"code", {{"a", 1}}}}, errc::invalid_argument, {"code must be", "an object"});
  expect_refused({{"code", nullptr}}, errc::invalid_argument, {"code must be", "null"});
}

TEST_F(run_python, code_has_a_limit) {
  bounds.code = 10;
  EXPECT_TRUE(read({{"code", "0123456789"}}));
  expect_refused({{"code", "0123456789a"}}, errc::too_large, {"code has 11 bytes", "10 bytes"});
}

TEST_F(run_python, bad_timeouts_name_the_range) {
  for (const auto& timeout : {json(0), json(-1), json(120.5), json(1e300), json(500)}) {
    expect_refused({{"code", "1"}, {"timeout", timeout}}, errc::invalid_argument,
                   {"timeout must be", "at most 120", "MCP_BRIDGE_MAX_TIMEOUT", "got"});
  }
  expect_refused({{"code", "1"}, {"timeout", "30"}}, errc::invalid_argument,
                 {"timeout must be a number", "got a string"});
  expect_refused({{"code", "1"}, {"timeout", true}}, errc::invalid_argument, {"got a boolean"});
  text = R"({"code":"1","timeout":1e999})";
  EXPECT_FALSE(read_python_call(text, catalogue, config, bounds));
}

TEST_F(run_python, bad_servers_are_named) {
  expect_refused({{"code", "1"}, {"servers", "memory"}}, errc::invalid_argument,
                 {"servers must be an array", "got a string"});
  expect_refused({{"code", "1"}, {"servers", {1}}}, errc::invalid_argument,
                 {"servers must be an array of server names", "got a number"});
  expect_refused({{"code", "1"}, {"servers", {"memory", json::array()}}}, errc::invalid_argument,
                 {"got an array"});
  expect_refused({{"code", "1"}, {"servers", {""}}}, errc::invalid_argument, {"1 to 256 bytes"});
}

TEST_F(run_python, unknown_servers_come_with_help) {
  expect_refused({{"code", "1"}, {"servers", {"memroy"}}}, errc::not_found,
                 {"\"memroy\"", "did you mean \"memory\"?", "github, memory, my-server"});
  auto far = read({{"code", "1"}, {"servers", {"weather"}}});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message.find("did you mean"), std::string::npos);
  EXPECT_EQ(far.error().message.find("secret"), std::string::npos);
}

TEST_F(run_python, without_servers_it_says_so) {
  catalogue.servers.clear();
  expect_refused({{"code", "1"}, {"servers", {"x"}}}, errc::not_found, {"none are configured"});
}

TEST_F(run_python, a_closed_policy_says_why) {
  catalogue.rules.closed = "every server is denied until /c.json is repaired: no JSON";
  expect_refused({{"code", "1"}, {"servers", {"memory"}}}, errc::denied, {"/c.json is repaired"});
  expect_refused({{"code", "1"}, {"servers", {"x"}}}, errc::not_found, {"/c.json is repaired"});
  EXPECT_TRUE(read({{"code", "1"}}));
}

TEST_F(run_python, disabled_servers_are_said_to_be) {
  catalogue.disabled = {{"off", "/c.json"}};
  expect_refused({{"code", "1"}, {"servers", {"off"}}}, errc::not_found, {"disabled in /c.json"});
}

TEST_F(run_python, servers_are_found_for_other_callers) {
  EXPECT_EQ(find_server("my_server", catalogue).value(), "my-server");
  EXPECT_EQ(
      find_server("memroy", catalogue).error().message,
      "there is no MCP server \"memroy\"; did you mean \"memory\"? there are: github, memory, "
      "my-server");
  EXPECT_EQ(find_server("secret", catalogue).error().code, errc::denied);
}

TEST_F(run_python, long_lists_of_servers_are_cut) {
  for (int i = 0; i < 200; ++i) {
    server_entry entry;
    entry.name = "server-" + std::to_string(i);
    catalogue.servers.push_back(entry);
  }
  expect_refused({{"code", "1"}, {"servers", {"weather"}}}, errc::not_found, {"and 183 more"});
}

TEST_F(run_python, denied_servers_name_the_rule) {
  expect_refused({{"code", "1"}, {"servers", {"secret"}}}, errc::denied,
                 {"\"secret\"", "policy", "sec*"});
}

TEST_F(run_python, unknown_arguments_are_refused) {
  expect_refused({{"code", "1"}, {"server", {"memory"}}}, errc::invalid_argument,
                 {"\"server\"", "did you mean \"servers\"?", "code, servers, files, timeout"});
  expect_refused({{"code", "1"}, {"colour", 1}}, errc::invalid_argument,
                 {"no argument \"colour\""});
  expect_refused({{"code", "1"}, {std::string(100'000, 'x'), 1}}, errc::invalid_argument, {"xxx"});
}

TEST_F(run_python, too_many_servers) {
  json many = json::array();
  for (int i = 0; i < 257; ++i) {
    many.push_back("memory");
  }
  expect_refused({{"code", "1"}, {"servers", many}}, errc::invalid_argument, {"256"});
  many.erase(0);
  EXPECT_TRUE(read({{"code", "1"}, {"servers", many}}));
}

TEST(closest_name, finds_misspellings_only) {
  std::vector<std::string_view> names{"github", "memory", "time"};
  EXPECT_EQ(closest_name("gihub", names), "github");
  EXPECT_EQ(closest_name("memmory", names), "memory");
  EXPECT_EQ(closest_name("tim", names), "time");
  EXPECT_EQ(closest_name("filesystem", names), "");
  EXPECT_EQ(closest_name("x", {}), "");
}

} // namespace
} // namespace bulkhead
