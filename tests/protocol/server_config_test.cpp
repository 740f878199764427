#include "protocol/server_config.hpp"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

const std::map<std::string, std::string, std::less<>> variables = {
    {"TOKEN", "s3cret-value"}, {"TOOLS", "/opt/tools"}, {"EMPTY", ""}};

server_catalogue read(const std::vector<config_file>& files, self_check self = {}) {
  return read_server_config(
      files,
      [](std::string_view name) -> std::optional<std::string> {
        auto found = variables.find(name);
        return found != variables.end() ? std::optional(found->second) : std::nullopt;
      },
      "/home/u", self);
}

server_catalogue read_one(std::string text) {
  return read({{"/c.json", std::move(text)}});
}

/// The one problem of an entry "x" with this JSON text.
std::string problem_of(const std::string& entry) {
  auto result = read_one(R"({"mcpServers":{"good":{"command":"ok"},"x":)" + entry + "}}");
  EXPECT_EQ(result.servers.size(), 1U) << entry;
  EXPECT_NE(result.find("good"), nullptr) << "the others load: " << entry;
  if (result.problems.size() != 1) {
    return "problems: " + std::to_string(result.problems.size());
  }
  EXPECT_EQ(result.problems[0].file, "/c.json");
  EXPECT_EQ(result.problems[0].entry, "x");
  return result.problems[0].message;
}

TEST(server_config, reads_a_whole_entry) {
  auto result = read_one(R"({
    // as an editor writes it
    "mcpServers": {
      "my-files": {
        "type": "stdio",
        "command": "~/bin/files",
        "args": ["--root", "${TOOLS}/data", "${PORT:-80}",],
        "env": {"TOKEN": "${TOKEN}", "MODE": "x"},
        "cwd": "~/work",
        "description": "Files",
        "startTimeout": 90, "callTimeout": 2.5,
        "autoApprove": ["ignored"]
      },
    },
  })");
  ASSERT_TRUE(result.problems.empty()) << result.problems[0].message;
  ASSERT_EQ(result.servers.size(), 1U);
  const auto& entry = result.servers[0];
  EXPECT_EQ(entry.name, "my-files");
  EXPECT_EQ(entry.alias, "my_files");
  EXPECT_EQ(entry.command, "/home/u/bin/files");
  EXPECT_EQ(entry.args, (std::vector<std::string>{"--root", "/opt/tools/data", "80"}));
  EXPECT_EQ(entry.env.at("TOKEN"), "s3cret-value");
  EXPECT_EQ(entry.cwd, "/home/u/work");
  EXPECT_EQ(entry.description, "Files");
  EXPECT_EQ(entry.source, "/c.json");
  EXPECT_EQ(entry.start_timeout.count(), 90'000);
  EXPECT_EQ(entry.call_timeout.count(), 2'500);
}

TEST(server_config, defaults_and_find) {
  auto result = read_one(R"({"servers":{"b-c":{"command":"x"},"a":{"command":"y"}}})");
  ASSERT_EQ(result.servers.size(), 2U);
  EXPECT_EQ(result.servers[0].name, "a");
  EXPECT_EQ(result.servers[0].start_timeout.count(), 60'000);
  EXPECT_EQ(result.find("b-c"), &result.servers[1]);
  EXPECT_EQ(result.find("b_c"), &result.servers[1]);
  EXPECT_EQ(result.find("c"), nullptr);
}

TEST(server_config, roots_become_uris) {
  auto result = read_one(R"({"mcpServers":{"a":{"command":"x","maxConcurrentCalls":3,
    "roots":["/data/a b/\u00fc%","~/notes","file:///as%20it%20is"]}}})");
  ASSERT_EQ(result.servers.size(), 1U);
  EXPECT_EQ(result.servers[0].roots,
            (std::vector<std::string>{"file:///data/a%20b/%C3%BC%25", "file:///home/u/notes",
                                      "file:///as%20it%20is"}));
  EXPECT_EQ(result.servers[0].most_calls, 3U);
  EXPECT_TRUE(result.problems.empty());
  for (const char* roots : {"\"/data\"", "[5]", "[\"data\"]", "[\"https://a.example/\"]"}) {
    EXPECT_NE(problem_of(std::string{R"({"command":"x","roots":)"} + roots + "}").find("roots"),
              std::string::npos)
        << roots;
  }
  for (const char* calls : {"0", "-1", "1.5", "\"3\"", "1001"}) {
    EXPECT_NE(problem_of(std::string{R"({"command":"x","maxConcurrentCalls":)"} + calls + "}")
                  .find("maxConcurrentCalls"),
              std::string::npos)
        << calls;
  }
}

TEST(server_config, a_raw_name_is_found_before_an_alias) {
  auto result = read_one(R"({"mcpServers":{"class":{"command":"x"},"class_":{"command":"y"}}})");
  ASSERT_EQ(result.servers.size(), 2U);
  EXPECT_NE(result.servers[0].alias, result.servers[1].alias);
  EXPECT_EQ(result.find("class_")->command, "y");
}

TEST(server_config, names_wrong_types) {
  EXPECT_EQ(problem_of("7"), "an entry of mcpServers must be an object, but is a number");
  EXPECT_EQ(problem_of("{}"), "has no command: it must be a string, the program to start");
  EXPECT_EQ(problem_of(R"({"command":["x"]})"), "command must be a string, but is an array");
  EXPECT_EQ(problem_of(R"({"command":null})"), "command must be a string, but is null");
  EXPECT_EQ(problem_of(R"({"command":""})"), "command is empty: it must name the program to start");
  EXPECT_EQ(problem_of(R"({"command":"x","args":"a"})"),
            "args must be an array of strings, but is a string");
  EXPECT_EQ(problem_of(R"({"command":"x","args":["a",3]})"),
            "args must be an array of strings, but args[1] is a number");
  EXPECT_EQ(problem_of(R"({"command":"x","env":["A=b"]})"),
            "env must be an object of strings, but is an array");
  EXPECT_EQ(problem_of(R"({"command":"x","env":{"A":true}})"),
            "env.A must be a string, but is a boolean");
  EXPECT_EQ(problem_of(R"({"command":"x","env":{"A=B":"c"}})"),
            "env has a name that is empty or holds \"=\" or a NUL character");
  EXPECT_EQ(problem_of(R"({"command":"x","cwd":"rel"})"),
            "cwd must be an absolute path, or one that starts with ~/");
  EXPECT_EQ(problem_of(R"({"command":"x","description":[]})"),
            "description must be a string, but is an array");
  EXPECT_EQ(problem_of(R"({"command":"x","startTimeout":"9"})"),
            "startTimeout must be a number of seconds, but is a string");
  EXPECT_EQ(problem_of(R"({"command":"x","callTimeout":0})"),
            "callTimeout must be from 0.1 to 86400 seconds, but is 0");
  EXPECT_EQ(problem_of(R"({"command":"x","disabled":"no"})"),
            "disabled must be true or false, but is a string");
  EXPECT_EQ(problem_of(R"({"command":"x","type":"pipe"})"),
            "type must be \"stdio\", \"http\" or \"sse\"");
  EXPECT_EQ(problem_of(R"({"command":"x\u0000y"})"),
            "command holds a NUL character, which no process can be given");
}

TEST(server_config, reads_servers_with_an_address) {
  auto result = read_one(R"({"mcpServers": {
    "a": {"url": "https://${HOST:-x.example}/mcp?key=${TOKEN}",
          "headers": {"Authorization": "Bearer ${TOKEN}", "X-None": "${NOPE-}"}, "callTimeout": 5},
    "b": {"type": "sse", "url": "http://127.0.0.1:1/sse", "command": "unused"},
    "c": {"serverUrl": "https://c"}, "d": {"httpUrl": "https://d"},
    "e": {"type": "streamable-http", "url": "HTTPS://e/%2f?a=%41"}}})");
  EXPECT_TRUE(result.problems.empty());
  ASSERT_EQ(result.servers.size(), 5U);
  const auto& a = result.servers[0];
  EXPECT_EQ(a.transport, server_transport::http);
  EXPECT_EQ(a.url, "https://x.example/mcp?key=s3cret-value");
  EXPECT_EQ(a.shown_url, "https://${HOST:-x.example}/mcp?key=${TOKEN}");
  EXPECT_EQ(a.headers,
            (std::map<std::string, std::string>{{"Authorization", "Bearer s3cret-value"}}));
  EXPECT_EQ(a.call_timeout, std::chrono::seconds(5));
  EXPECT_EQ(result.servers[1].transport, server_transport::sse);
  EXPECT_EQ(result.servers[1].command, "");
  EXPECT_EQ(result.servers[2].url, "https://c");
  EXPECT_EQ(result.servers[3].url, "https://d");
  EXPECT_EQ(result.servers[4].shown_url, "HTTPS://e/%2f?a=%41");
}

TEST(server_config, refuses_unusable_addresses) {
  for (auto url :
       {"ftp://x", "http://", "x.example", "https://a b", "https://x\\u000d\\u000ay", "",
        "https://user:s3cret@x/", "https://x/\\u00e4", "https://%6cocalhost/", "http://x:0/"}) {
    EXPECT_EQ(
        problem_of(std::string(R"({"type":"http","url":")") + url + "\"}"),
        "url must be an address that begins with http:// or https://, with a host and without "
        "spaces, other characters that no URL may hold, or a user name (credentials go into "
        "headers)")
        << url;
  }
  EXPECT_EQ(problem_of(R"({"type":"http","command":"x"})"),
            "has no url: a server of this type needs the address to connect to");
  EXPECT_EQ(problem_of(R"({"url":"https://x","headers":["a"]})"),
            "headers must be an object of strings");
  EXPECT_EQ(problem_of(R"({"url":"https://x","headers":{"a b":"c"}})"),
            "headers has a name that no HTTP header can have");
  EXPECT_EQ(problem_of(R"({"url":"https://x","headers":{"A":"b\nc"}})"),
            "headers.A holds a control character");
  EXPECT_EQ(problem_of(R"({"url":"https://x","headers":{"A":"${NOPE}"}})"),
            "headers.A needs the environment variable NOPE, which isn't set: set it or write "
            "${NOPE:-default}");
}

TEST(server_config, reads_how_to_log_in) {
  auto result = read_one(R"({"mcpServers": {
    "a": {"url": "https://a", "oauth": {"clientId": "me", "clientSecret": "${TOKEN}",
          "clientMetadataUrl": "https://me/c.json", "scope": "x y", "callbackPort": 8123}},
    "b": {"url": "https://b", "oauth": false}}})");
  EXPECT_TRUE(result.problems.empty());
  ASSERT_EQ(result.servers.size(), 2U);
  EXPECT_EQ(result.servers[0].oauth,
            (server_oauth{"me", "s3cret-value", "https://me/c.json", "x y", 8123}));
  EXPECT_EQ(result.servers[1].oauth, server_oauth{});
  EXPECT_EQ(problem_of(R"({"url":"https://x","oauth":"yes"})"), "oauth must be an object");
  EXPECT_EQ(problem_of(R"({"url":"https://x","oauth":{"callbackPort":70000}})"),
            "oauth.callbackPort must be a port, from 0 to 65535");
  EXPECT_EQ(problem_of(R"({"url":"https://x","oauth":{"clientSecret":7}})"),
            "oauth.clientSecret must be a string, but is a number");
}

TEST(server_config, an_entry_narrows_its_tools) {
  auto result = read_one(R"({"mcpServers": {
      "a": {"command": "x", "includeTools": ["ls", "get_*"], "excludeTools": ["get_key"]},
      "b": {"command": "x", "includeTools": []}, "c": {"command": "x", "excludeTools": []}},
      "policy": {"deny": ["a/get_two"]}})");
  EXPECT_TRUE(result.problems.empty());
  auto allowed = [&](const char* server, const char* tool) {
    return allows_tool_name(result.rules, server, tool);
  };
  EXPECT_TRUE(allowed("a", "ls").allowed);
  EXPECT_TRUE(allowed("a", "get_one").allowed);
  EXPECT_EQ(allowed("a", "get_key").rule, "\"get_key\" of excludeTools in the server's entry");
  EXPECT_EQ(allowed("a", "rm").rule, "not in includeTools of the server's entry");
  EXPECT_EQ(allowed("a", "get_two").rule, "deny rule \"a/get_two\" (/c.json)");
  EXPECT_FALSE(allowed("b", "ls").allowed);
  EXPECT_TRUE(allowed("c", "ls").allowed);
  run_rights rights{result.rules, {"a", "b"}};
  EXPECT_FALSE(rights.tool_name("a", "rm").allowed);
  for (auto entry :
       {R"({"command":"x","includeTools":"ls"})", R"({"command":"x","excludeTools":[1]})",
        R"({"command":"x","excludeTools":[""]})", R"({"command":"x","excludeTool":["a"]})"}) {
    EXPECT_FALSE(problem_of(entry).empty()) << entry;
  }
}

TEST(server_config, a_filter_goes_with_its_entry) {
  auto result =
      read({{"/a.json", R"({"mcpServers": {"x": {"command": "x", "includeTools": ["ls"]}}})"},
            {"/b.json", R"({"mcpServers": {"x": {"command": "y"}}})"}});
  EXPECT_TRUE(allows_tool_name(result.rules, "x", "rm").allowed);
  EXPECT_TRUE(result.rules.filters.empty());
}

TEST(server_config, variables_from_elsewhere) {
  const file_lookup files = [](const std::string& path, bool bound) -> expected<std::string> {
    if (path == "/p/.env" || (bound && path == "/shared/.env")) {
      return "A=from-file\nB=b\n";
    }
    return fail(errc::not_found, "isn't there");
  };
  auto look_up = [](std::string_view name) -> std::optional<std::string> {
    return name == "TOKEN" ? std::optional<std::string>("s3cret-value") : std::nullopt;
  };
  auto result = read_server_config({{"/c.json", R"({"mcpServers": {
          "a": {"command": "x", "env": {"A": "own"}, "envFile": "/p/.env", "envVars": ["TOKEN", "NOPE", "B"]},
          "b": {"command": "x", "envFile": "/shared/.env"},
          "c": {"command": "x", "envFile": "rel"},
          "d": {"command": "x", "envFile": "/shared/.env", "envFileSha256": "0123"},
          "e": {"command": "x", "envVars": ["not a name"]}}})"}},
                                   look_up, "/home/u", {}, files);
  ASSERT_EQ(result.servers.size(), 1U);
  EXPECT_EQ(result.servers[0].env, (std::map<std::string, std::string>{
                                       {"A", "own"}, {"B", "b"}, {"TOKEN", "s3cret-value"}}));
  ASSERT_EQ(result.problems.size(), 4U);
  EXPECT_EQ(result.problems[0].message, "envFile \"/shared/.env\" isn't there");
  EXPECT_EQ(result.problems[1].message,
            "envFile must be an absolute path, or one that starts with ~/");
  EXPECT_TRUE(result.problems[2].message.find("has changed since it was approved") !=
              std::string::npos);
  EXPECT_EQ(result.problems[3].message, "envVars must be an array of names of variables");
}

TEST(server_config, sources_tell_what_became_of_each_definition) {
  auto result =
      read({{"/a.json", R"({"mcpServers": {"x": {"command": "x"}, "y": {"command": "y"}}})"},
            {"/b.json", R"({"mcpServers": {"x": {"command": "x", "disabled": true}}})"},
            {"/c.json", R"({"mcpServers": {"z": {"command": 3}}})"},
            {"/d.json", "{"}});
  using enum definition_state;
  ASSERT_EQ(result.sources.size(), 4U);
  EXPECT_EQ(result.sources[0].servers,
            (std::vector<source_server>{{"x", shadowed, "/b.json"}, {"y", used, ""}}));
  EXPECT_EQ(result.sources[1].servers, (std::vector<source_server>{{"x", disabled, ""}}));
  EXPECT_EQ(result.sources[2].servers, (std::vector<source_server>{{"z", unusable, ""}}));
  EXPECT_TRUE(result.sources[3].servers.empty());
}

TEST(server_config, skips_own_entries) {
  EXPECT_TRUE(
      problem_of(R"({"command":"bulkhead"})").starts_with("would start this program again"));
  auto allowed = read({{"/c.json", R"({"mcpServers":{"x":{"command":"bulkhead"}}})"}},
                      {.own_path = {}, .allowed = true, .canonical = {}});
  EXPECT_EQ(allowed.servers.size(), 1U);
}

TEST(server_config, an_unset_variable_skips_its_entry) {
  EXPECT_EQ(problem_of(R"({"command":"x","args":["${NOPE}"]})"),
            "args[0] needs the environment variable NOPE, which isn't set: set it or write "
            "${NOPE:-default}");
  EXPECT_TRUE(
      problem_of(R"({"command":"x","env":{"K":"${input:key}"}})").starts_with("env.K has a ${"));
}

TEST(server_config, no_problem_shows_a_value) {
  const std::vector<std::string> texts = {
      R"({"command":"x","env":{"K":"${TOKEN}${NOPE}"},"args":["s3cret-value ${NOPE}"]})",
      R"({"command":"x","env":{"K":"s3cret-value ${"}})",
      R"({"command":"x","env":{"K":"s3cret-value\u0000"}})",
      R"({"command":"bulkhead","env":{"K":"s3cret-value"}})",
      R"({"command":"x","cwd":"s3cret-value"})",
      R"({"command":"x","env":"s3cret-value"})",
      R"({"command":"x","env":{"K":"${s3cret+value}"}})",
  };
  for (const auto& text : texts) {
    EXPECT_EQ(problem_of(text).find("s3cret"), std::string::npos) << text;
  }
  auto broken = read_one("{\"mcpServers\":{\"x\":{\"env\":{\"K\":\"s3cret-value\" oops}}}}");
  ASSERT_EQ(broken.problems.size(), 1U);
  EXPECT_EQ(broken.problems[0].message.find("s3cret"), std::string::npos)
      << broken.problems[0].message;
}

TEST(server_config, a_bad_file_leaves_the_others) {
  auto result =
      read({{"/bad.json", "{\n  \"mcpServers\": {\n    oops\n  }\n}"},
            {"/list.json", "[]"},
            {"/empty.json", ""},
            {"/none.json", "{\"theme\":\"dark\"}"},
            {"/type.json", "{\"mcpServers\":[]}"},
            {"/twice.json", R"({"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}})"},
            {"/huge.json", std::string(largest_config_file + 1, ' ')},
            {"/deep.json", std::string(200'000, '[')},
            {"/good.json", R"({"mcpServers":{"ok":{"command":"x"}}})"}});
  ASSERT_EQ(result.servers.size(), 1U);
  EXPECT_EQ(result.servers[0].name, "ok");
  ASSERT_EQ(result.problems.size(), 8U);
  EXPECT_TRUE(result.problems[0].message.starts_with("line 3, column "))
      << result.problems[0].message;
  EXPECT_TRUE(result.problems[1].message.starts_with("must hold a JSON object"));
  EXPECT_TRUE(result.problems[3].message.starts_with("has neither"));
  EXPECT_EQ(result.problems[4].message,
            "mcpServers must be an object with an entry for each server, but is an array");
  for (const auto& problem : result.problems) {
    EXPECT_TRUE(problem.entry.empty());
    EXPECT_LT(problem.message.size(), 400U);
  }
}

TEST(server_config, bad_names) {
  auto result = read_one(
      R"({"mcpServers":{"":{"command":"x"},"a/b":{"command":"x"},"t\u001b[2J":{"command":"x"},
                             ")" +
      std::string(129, 'n') + R"(":{"command":"x"},")" + std::string(128, 'n') +
      R"(":{"command":"x"}}})");
  EXPECT_EQ(result.servers.size(), 1U);
  ASSERT_EQ(result.problems.size(), 4U);
  for (const auto& problem : result.problems) {
    EXPECT_EQ(problem.entry.find('\x1b'), std::string::npos);
    EXPECT_LE(problem.entry.size(), longest_server_name + 3);
  }
}

TEST(server_config, a_later_file_shadows_an_earlier_one) {
  auto result =
      read({{"/1.json", R"({"mcpServers":{"a":{"command":"one"},"b":{"command":"one"}}})"},
            {"/2.json", R"({"mcpServers":{"a":{"command":"two"}}})"},
            {"/3.json", R"({"mcpServers":{"b":{"command":"x","disabled":true}}})"}});
  ASSERT_EQ(result.servers.size(), 1U);
  EXPECT_EQ(result.servers[0].command, "two");
  EXPECT_EQ(result.servers[0].source, "/2.json");
  ASSERT_EQ(result.problems.size(), 2U);
  EXPECT_EQ(result.problems[0],
            (config_problem{"/1.json", "a", "is shadowed by the entry of the same name in /2.json",
                            problem_kind::remark}));
  EXPECT_EQ(result.problems[1].message, "is shadowed by the entry of the same name in /3.json");
  EXPECT_EQ(result.disabled, (std::vector<disabled_server>{{"b", "/3.json"}}));
}

TEST(server_config, policies_are_put_together) {
  auto result = read({{"/1.json", R"({"policy":{"allow":["a","b/*"],"deny":["c"]}})"},
                      {"/2.json", R"({"policy":{"deny":["a/delete_*"]},"mcpServers":
                                      {"a":{"command":"x"},"b":{"command":"x"},
                                       "c":{"command":"x","disabled":true}}})"}});
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.rules.allow,
            (std::vector<policy_pattern>{{"a", "/1.json"}, {"b/*", "/1.json"}}));
  EXPECT_EQ(result.rules.deny,
            (std::vector<policy_pattern>{{"c", "/1.json"}, {"a/delete_*", "/2.json"}}));
}

TEST(server_config, a_policy_that_cannot_be_understood_denies_all) {
  for (auto text : {R"({"policy":[]})",
                    R"({"policy":{"deny":"x"}})",
                    R"({"policy":{"deny":["x",7]}})",
                    R"({"policy":{"denied":["x"]}})",
                    R"({"policy":{"allow":[""]}})",
                    R"({"policy":{"deny":["x"]})",
                    R"({"policy":null})",
                    R"({"Policy":{"deny":["z"]}})",
                    R"({"polcy":{"deny":["z"]}})",
                    R"({"policies":{"deny":["z"]}})",
                    R"({"deny":["z"]})",
                    R"({'policy':{'deny':['z']}})",
                    R"([{"policy":{"deny":["z"]}}])",
                    R"("policy")",
                    "",
                    "  ",
                    R"({"policy":{"deny":["z"]},"policy":{}})",
                    R"({"policy":{"deny":["z"],"deny":[]}})",
                    R"({"policy":{"deny":["z"]},"p\u006flicy":{}})",
                    R"({"polic\u0079 ":{"deny":["z"]}})",
                    R"({"policy":{"deny":["\xff"]}})",
                    R"({"mcpServers":{"policy":{"deny":["x"]}}})",
                    R"({"mcpServers":{"a":{"command":"x","startTimeout":1e999}}})"}) {
    auto result = read({{"/p.json", text}, {"/c.json", R"({"mcpServers":{"x":{"command":"y"}}})"}});
    EXPECT_EQ(result.servers.size(), 1U) << text;
    EXPECT_FALSE(allows_server(result.rules, "x").allowed) << text;
    bool told = false;
    for (const auto& problem : result.problems) {
      told = told || problem.message.find("every server is denied") != std::string::npos;
    }
    EXPECT_TRUE(told) << text;
    EXPECT_NE(allows_tool_name(result.rules, "x", "t").rule.find("/p.json"), std::string::npos)
        << text;
  }
}

TEST(server_config, a_file_that_was_not_read_denies_all) {
  using namespace std::string_view_literals;
  std::string wide;
  for (char c : R"({"policy":{"deny":["z"]}})"sv) {
    wide += {c, '\0'};
  }
  const std::vector<config_file> unread = {
      {"/p.json", {}, "permission denied"},
      {"/p.json", wide},
      {"/p.json", "\xFF\xFE" + wide},
      {"/p.json", std::string(largest_config_file + 1, ' ')},
      {"/p.json", std::string(200'000, '[')},
  };
  for (const auto& file : unread) {
    auto result = read({file, {"/c.json", R"({"mcpServers":{"x":{"command":"y"}}})"}});
    EXPECT_EQ(result.servers.size(), 1U);
    ASSERT_EQ(result.problems.size(), 1U);
    EXPECT_EQ(result.problems[0].kind, problem_kind::error);
    EXPECT_FALSE(allows_server(result.rules, "x").allowed);
    EXPECT_FALSE(allows_tool_name(result.rules, "x", "t").allowed);
    EXPECT_FALSE(run_rights(result.rules, {"x"}).tool_name("x", "t").allowed);
    EXPECT_TRUE(run_rights(result.rules, {"x"}).servers().empty());
  }
}

TEST(server_config, a_policy_under_an_escaped_key_works) {
  auto result = read_one(R"({"p\u006flicy":{"d\u0065ny":["x/*"]},
                             "mcpServers":{"x":{"command":"y"},"z":{"command":"y"}}})");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_FALSE(allows_server(result.rules, "x").allowed);
  EXPECT_TRUE(allows_server(result.rules, "z").allowed);
}

TEST(server_config, misspelled_policies_come_with_a_hint) {
  for (auto text : {R"({"polcy":{}})", R"({"Policy":{}})", R"({"policys":{}})"}) {
    auto result = read_one(text);
    ASSERT_EQ(result.problems.size(), 1U) << text;
    EXPECT_NE(result.problems[0].message.find("did you mean \"policy\"?"), std::string::npos)
        << result.problems[0].message;
  }
  auto inside = read_one(R"({"policy":{"denny":[]}})");
  ASSERT_EQ(inside.problems.size(), 1U);
  EXPECT_NE(inside.problems[0].message.find("did you mean \"deny\"?"), std::string::npos);
}

TEST(server_config, a_duplicate_key_is_named_with_its_line) {
  auto result = read_one("{\n  // c\n  \"mcpServers\": {\n    \"a\": {},\n    \"a\": {}\n  }\n}");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_TRUE(result.problems[0].message.starts_with(
      "line 5, column 5: a key that its object already has (\"a\")"))
      << result.problems[0].message;
}

TEST(server_config, keys_that_nothing_reads_are_named) {
  auto result = read_one(R"({"mcpservers":{},"colour":1,"$schema":"x","mcpServers":{}})");
  ASSERT_EQ(result.problems.size(), 2U);
  EXPECT_EQ(result.problems[0].message, "unknown key \"mcpservers\"; did you mean \"mcpServers\"?");
  EXPECT_EQ(result.problems[0].kind, problem_kind::error);
  EXPECT_TRUE(result.problems[1].message.starts_with("nothing reads \"colour\""));
  EXPECT_EQ(result.problems[1].kind, problem_kind::remark);
  EXPECT_TRUE(result.rules.closed.empty());

  EXPECT_TRUE(problem_of(R"({"command":"x","arg":["--read-only"]})")
                  .starts_with("unknown key \"arg\"; did you mean \"args\"?"));
  EXPECT_TRUE(
      problem_of(R"({"command":"x","Disabled":true})").ends_with("until that is repaired."));
  EXPECT_TRUE(problem_of(R"({"command":"x","disabledTools":["t"]})").find("x/TOOL") !=
              std::string::npos);
  auto used = read_one(R"({"mcpServers":{"x":{"command":"y","timeout":9,"descripton":"d"}}})");
  EXPECT_EQ(used.servers.size(), 1U);
  ASSERT_EQ(used.problems.size(), 2U);
  EXPECT_EQ(used.problems[0].message, "unknown key \"descripton\"; did you mean \"description\"?");
  EXPECT_NE(used.problems[1].message.find("callTimeout"), std::string::npos);
  EXPECT_EQ(used.problems[1].kind, problem_kind::remark);
  auto harmless =
      read_one(R"({"mcpServers":{"x":{"command":"y","tools":["*"],"disabledTools":[]}}})");
  EXPECT_TRUE(harmless.problems.empty());
}

TEST(server_config, patterns_for_no_server_are_worth_a_word) {
  auto result = read_one(R"({"policy":{"allow":["githb/*","git*"],"deny":["weather"]},
                             "mcpServers":{"github":{"command":"x"}}})");
  ASSERT_EQ(result.problems.size(), 2U);
  EXPECT_EQ(result.problems[0].message,
            "policy.allow: \"githb/*\" matches no configured server; did "
            "you mean \"github\"?");
  EXPECT_EQ(result.problems[1].message, "policy.deny: \"weather\" matches no configured server");
  EXPECT_EQ(result.problems[0].kind, problem_kind::remark);
  // What was meant to be shut is open.
  EXPECT_EQ(result.problems[1].kind, problem_kind::error);
}

TEST(server_config, disabled_entries_are_no_problem) {
  auto result = read_one(R"({"mcpServers":{"x":{"disabled":true},"y":{"command":"z"}}})");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.disabled, (std::vector<disabled_server>{{"x", "/c.json"}}));
  EXPECT_EQ(result.servers.size(), 1U);
}

TEST(server_config, patterns_that_mean_nothing_deny_all) {
  for (const auto* pattern :
       {"x/", "/y", "x/{a,b}", "x/[a-z]*", "x/ y", " x", "x/y ", "!x", "x/\\u0007"}) {
    auto result = read_one(fmt::format(
        R"({{"policy":{{"deny":["{}"]}},"mcpServers":{{"x":{{"command":"c"}}}}}})", pattern));
    EXPECT_FALSE(allows_server(result.rules, "x").allowed) << pattern;
    ASSERT_FALSE(result.problems.empty()) << pattern;
  }
  EXPECT_TRUE(
      allows_server(read_one(R"({"policy":{"deny":["my server/a b"]}})").rules, "x").allowed);
}

TEST(server_config, keys_that_may_have_been_meant_to_forbid_deny_all) {
  for (const auto* key : {"denyList", "blocklist", "permissions", "rules", "policy.deny", "pоlicy",
                          "policy\u200b", "excluded", "blockedServers"}) {
    auto result = read_one(fmt::format(R"({{"{}":[]}})", key));
    EXPECT_FALSE(allows_server(result.rules, "x").allowed) << key;
  }
}

TEST(server_config, entry_keys_that_may_have_been_meant_to_forbid_drop_the_server) {
  for (const auto* key :
       {"Deny", "denyTools", "blockedTools", "excludedTools", "toolFilter", "enable"}) {
    auto result =
        read_one(fmt::format(R"({{"mcpServers":{{"x":{{"command":"c","{}":["y"]}}}}}})", key));
    EXPECT_TRUE(result.servers.empty()) << key;
    EXPECT_FALSE(result.problems.empty()) << key;
  }
  EXPECT_EQ(read_one(R"({"mcpServers":{"x":{"command":"c","alwaysAllow":["y"]}}})").servers.size(),
            1U);
}

TEST(server_config, an_empty_allow_list_allows_nothing_and_is_worth_a_word) {
  auto result = read_one(R"({"policy":{"allow":[]}})");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_FALSE(allows_server(result.rules, "x").allowed);
  EXPECT_FALSE(allows_tool_name(result.rules, "x", "y").allowed);
  EXPECT_TRUE(allows_server(read_one(R"({"policy":{"deny":[]}})").rules, "x").allowed);
}

TEST(server_config, a_damaged_file_never_takes_the_good_one_with_it) {
  using namespace std::string_view_literals;
  const std::string sound = R"({ // c
    "mcpServers": {"a": {"command": "${TOOLS}/x", "args": ["1", "${A:-b}",], "env": {"K": "v"}},
                   "b": {"url": "https://x"}, "c": {"command": "sh", "args": ["-c", "bulkhead"]}},
    "policy": {"allow": ["*"], "deny": ["z/*"]}, /* end */ })";
  const std::string_view bytes = "{}[]\",:/*$\\~\n\0\xff 0z"sv;
  std::mt19937 random(20'261'130);
  for (int round = 0; round < 3000; ++round) {
    auto text = sound;
    for (int change = 0; change < 3; ++change) {
      auto at = random() % text.size();
      switch (random() % 3) {
      case 0:
        text.erase(at, random() % 8);
        break;
      case 1:
        text.insert(at, 1, bytes[random() % bytes.size()]);
        break;
      default:
        text[at] = bytes[random() % bytes.size()];
      }
    }
    EXPECT_EQ(strip_json_comments(text).size(), text.size());
    auto result =
        read({{"/bad.json", text}, {"/good.json", R"({"servers":{"ok":{"command":"x"}}})"}});
    ASSERT_NE(result.find("ok"), nullptr) << text;
    for (const auto& server : result.servers) {
      EXPECT_FALSE(server.command.empty() && server.url.empty());
      EXPECT_EQ(server.alias, python_identifier(server.alias));
    }
  }
}

} // namespace
} // namespace bulkhead
