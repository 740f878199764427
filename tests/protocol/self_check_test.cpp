#include <gtest/gtest.h>

#include "protocol/server_config.hpp"

namespace bulkhead {
namespace {

bool is_self(const std::string& command, const std::vector<std::string>& args = {}) {
  return starts_self({.own_path = "/opt/bulkhead/bin/bh", .allowed = false, .canonical = {}},
                     command, args);
}

TEST(self_check, by_name_and_path) {
  EXPECT_TRUE(is_self("bulkhead"));
  EXPECT_TRUE(is_self("/usr/local/bin/bulkhead", {"serve"}));
  EXPECT_TRUE(is_self("/opt/bulkhead/bin/bh"));
  EXPECT_FALSE(is_self("/usr/bin/bh"));
  EXPECT_FALSE(is_self("bulkheads"));
  EXPECT_FALSE(is_self("/opt/bulkhead/bin/other"));
  EXPECT_FALSE(is_self("python3", {"server.py"}));
}

TEST(self_check, by_canonical_path) {
  self_check self;
  self.own_path = "/opt/bin/bulkhead-0.1";
  self.canonical = [](const std::string& command) {
    return command == "sandbox" ? std::string("/opt/bin/bulkhead-0.1") : std::string();
  };
  EXPECT_TRUE(starts_self(self, "sandbox", {}));
  EXPECT_TRUE(starts_self(self, "env", {"A=b", "sandbox"}));
  EXPECT_FALSE(starts_self(self, "other", {}));
  self.own_path.clear();
  EXPECT_FALSE(starts_self(self, "other", {})) << "an unknown own path equals nothing";
}

TEST(self_check, through_launchers) {
  EXPECT_TRUE(is_self("npx", {"-y", "bulkhead"}));
  EXPECT_TRUE(is_self("npx", {"-y", "@someone/bulkhead@1.2.3"}));
  EXPECT_TRUE(is_self("npx", {"--package", "bulkhead", "bh"}));
  EXPECT_TRUE(is_self("uvx", {"bulkhead==0.1"}));
  EXPECT_TRUE(is_self("uvx", {"--from", "git+https://host/x/bulkhead.git", "bh"}));
  EXPECT_TRUE(is_self("uv", {"tool", "run", "bulkhead"}));
  EXPECT_TRUE(is_self("env", {"A=b", "/usr/bin/bulkhead"}));
  EXPECT_TRUE(is_self("env", {"-i", "-u", "X", "bulkhead"}));
  EXPECT_TRUE(is_self("/usr/bin/env", {"sh", "-c", "exec bulkhead"}));
  EXPECT_TRUE(is_self("timeout", {"30", "bulkhead"}));
}

TEST(self_check, through_shells) {
  EXPECT_TRUE(is_self("sh", {"-c", "bulkhead"}));
  EXPECT_TRUE(is_self("bash", {"-lc", "cd /tmp && A=1 exec 'bulkhead' serve"}));
  EXPECT_TRUE(is_self("sh", {"-c", "npx -y bulkhead | tee log"}));
  EXPECT_TRUE(is_self("sh", {"/usr/bin/bulkhead"}));
  EXPECT_FALSE(is_self("sh", {"-c", "cd /src/bulkhead && node server.js"}));
  EXPECT_FALSE(is_self("sh", {"-c"}));
  EXPECT_FALSE(is_self("sh"));
}

TEST(self_check, a_folder_among_the_arguments_is_no_program) {
  EXPECT_FALSE(
      is_self("npx", {"-y", "@modelcontextprotocol/server-filesystem", "/home/u/bulkhead"}));
  EXPECT_FALSE(is_self("uvx", {"mcp-server-git", "--repository", "/src/bulkhead"}));
  EXPECT_FALSE(is_self("uv", {"--directory", "/src/bulkhead", "run", "server.py"}));
}

TEST(self_check, the_bridge_it_replaces) {
  EXPECT_TRUE(is_self("mcp-server-code-execution-mode"));
  EXPECT_TRUE(
      is_self("uvx", {"--from", "git+https://host/o/mcp-server-code-execution-mode", "x", "run"}));
  EXPECT_TRUE(is_self("python3", {"/opt/mcp_server_code_execution_mode.py"}));
}

TEST(self_check, endless_nesting_ends) {
  std::vector<std::string> args(500, "env");
  args.emplace_back("bulkhead");
  EXPECT_FALSE(is_self("env", args)) << "only a few levels are followed";
}

} // namespace
} // namespace bulkhead
