#include "protocol/import_record.hpp"

#include <gtest/gtest.h>

#include "protocol/content_digest.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

import_record sample() {
  import_record record;
  record.host = mcp_host::claude_code;
  record.linked = true;
  record.home = "/home/u";
  record.project = "/p";
  record.files = {{"/p/.mcp.json", host_scope::project, false, content_digest("x")},
                  {"/home/u/.claude.json", host_scope::local, false, {}},
                  {"/p/.claude/settings.json", host_scope::project, true, {}}};
  record.env_files = {{"/p/.env", content_digest("y")}};
  return record;
}

TEST(import_record, comes_back_as_it_was) {
  auto record = sample();
  auto read = read_import_record({{"import", to_json(record)}, {"mcpServers", json::object()}});
  ASSERT_TRUE(read);
  EXPECT_EQ(**read, record);
  EXPECT_EQ(read_import_record(json::object()).value(), std::nullopt);
}

TEST(import_record, damage_is_told) {
  auto damage = [](const char* pointer, json value) {
    json document{{"import", to_json(sample())}};
    document[json::json_pointer(pointer)] = std::move(value);
    auto read = read_import_record(document);
    return read ? std::string{"none"} : read.error().message;
  };
  for (const auto& [pointer, value, word] : std::vector<std::tuple<const char*, json, std::string>>{
           {"/import", nullptr, "host"},
           {"/import/host", "emacs", "host"},
           {"/import/linked", "yes", "linked"},
           {"/import/files/0/file", "relative", "files"},
           {"/import/files/0/sha256", "abc", "files"},
           {"/import/files/0/sha256", "", "files"},
           {"/import/files/1/scope", "machine", "files"},
           {"/import/project", "", "files"},
           {"/import/envFiles/~1p~1.env", "abc", "envFiles"}}) {
    EXPECT_NE(damage(pointer, value).find("no usable \"" + word + "\""), std::string::npos)
        << pointer;
  }
}

TEST(import_record, file_names) {
  EXPECT_EQ(import_file_name(mcp_host::cursor, ""), "imported-cursor.json");
  auto one = import_file_name(mcp_host::cursor, "/a/my project");
  EXPECT_TRUE(one.starts_with("imported-cursor-my_project-")) << one;
  EXPECT_NE(one, import_file_name(mcp_host::cursor, "/b/my project"));
}

TEST(import_record, environment_files_are_bound) {
  json servers{{"a", {{"command", "x"}, {"envFile", "/p/.env"}}}, {"b", {{"envFile", "/else"}}}};
  bind_env_files(servers, {{"/p/.env", "123"}});
  EXPECT_EQ(servers["a"]["envFileSha256"], "123");
  EXPECT_FALSE(servers["b"].contains("envFileSha256"));
}

} // namespace
} // namespace bulkhead
