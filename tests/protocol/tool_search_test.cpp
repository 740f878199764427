#include <chrono>
#include <deque>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/tool_index.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

tool_document tool(const std::string& name, const std::string& description,
                   const std::string& schema = "{}") {
  tool_document result;
  result.name = name;
  result.alias = name;
  result.description = description;
  result.input_schema = schema;
  return result;
}

std::vector<server_documents> catalogue() {
  return {
      {"github",
       "github",
       "",
       {tool("create_issue", "Opens a new issue in a repository.",
             R"({"properties":{"labels":{},"assignee":{}}})"),
        tool("list_issues", "Lists the issues of a repository."),
        tool("merge_pull_request", "Merges a pull request."),
        tool("searchCode", "Looks for text in code.")}},
      {"files",
       "files",
       "",
       {tool("read_file", "Reads a file from disk."), tool("write_file", "Writes text to disk."),
        tool("HTTPFetch", "Gets a page; mentions a file once.")}},
      {"übersetzer", "_bersetzer", "", {tool("translate", "Übersetzt Text ins Französische.")}},
  };
}

std::string search_in(const std::vector<server_documents>& servers, std::string_view query,
                      std::uint32_t limit, bool full_detail) {
  std::deque<tool_index> indexes;
  std::vector<const tool_index*> pointers;
  for (const auto& server : servers) {
    pointers.push_back(&indexes.emplace_back(server));
  }
  return search_tool_documents(pointers, query, limit, full_detail);
}

std::vector<std::string> search(std::string_view query, std::uint32_t limit = 5) {
  std::vector<std::string> result;
  for (const auto& document : json::parse(search_in(catalogue(), query, limit, false))) {
    result.push_back(document["tool"]);
  }
  return result;
}

std::string best(std::string_view query) {
  auto found = search(query);
  return found.empty() ? "" : found.front();
}

TEST(search, finds_by_name_description_parameter_and_server) {
  EXPECT_EQ(best("read file"), "read_file");
  EXPECT_EQ(best("open a new issue"), "create_issue");
  EXPECT_EQ(best("assignee"), "create_issue");
  EXPECT_EQ(best("pull requests"), "merge_pull_request");
  EXPECT_EQ(search("github").size(), 4U);
}

TEST(search, splits_names_and_joins_them) {
  EXPECT_EQ(best("search code"), "searchCode");
  EXPECT_EQ(best("search-code"), "searchCode");
  EXPECT_EQ(best("searchcode"), "searchCode");
  EXPECT_EQ(best("readfile"), "read_file");
  EXPECT_EQ(best("http"), "HTTPFetch");
  EXPECT_EQ(best("fetch"), "HTTPFetch");
}

TEST(search, plurals_and_prefixes) {
  EXPECT_EQ(best("reads files"), "read_file");
  EXPECT_EQ(best("repositories issue list"), "list_issues");
  EXPECT_EQ(best("transl"), "translate");
  EXPECT_TRUE(search("tr").empty()) << "two letters begin too many words";
  EXPECT_EQ(best("französische"), "translate");
}

TEST(search, the_whole_word_beats_its_prefix) {
  std::vector<server_documents> servers = {
      {"s", "s", "", {tool("filesystem_stat", "x"), tool("file", "x")}}};
  auto found = json::parse(search_in(servers, "file", 5, false));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["tool"], "file");
  EXPECT_GT(found[0]["score"], found[1]["score"]);
}

TEST(search, a_rare_word_counts_more_than_a_common_one) {
  EXPECT_EQ(best("text code"), "searchCode");
}

TEST(search, limits) {
  EXPECT_EQ(search("issue", 1).size(), 1U);
  EXPECT_TRUE(search("issue", 0).empty());
  EXPECT_LE(search("a the in of to", 4'000'000'000U).size(), 50U);
}

TEST(search, nothing_to_find) {
  EXPECT_EQ(search_in(catalogue(), "", 5, false), "[]");
  EXPECT_EQ(search_in(catalogue(), "?!", 5, false), "[]");
  EXPECT_EQ(search_in(catalogue(), "zebra", 5, false), "[]");
  EXPECT_EQ(search_in({}, "file", 5, false), "[]");
  EXPECT_EQ(search_in({{"s", "s", "", {}}}, "file", 5, false), "[]");
}

TEST(search, full_detail_brings_schemas) {
  auto found = json::parse(search_in(catalogue(), "assignee", 1, true));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("inputSchema"));
  EXPECT_EQ(found[0]["serverAlias"], "github");
  EXPECT_GT(found[0]["score"].get<double>(), 0);
  auto brief = json::parse(search_in(catalogue(), "assignee", 1, false));
  EXPECT_FALSE(brief[0].contains("inputSchema"));
}

TEST(search, is_the_same_each_time) {
  EXPECT_EQ(search_in(catalogue(), "file text issue", 10, false),
            search_in(catalogue(), "file text issue", 10, false));
}

TEST(search, deprecated_tools_come_after_others) {
  for (const auto* text :
       {"DEPRECATED: use mail_send. Sends mail to people.", "[deprecated] Sends mail to people.",
        "This is deprecated. Sends mail.", "Sends mail to people. (DEPRECATED)"}) {
    std::vector<server_documents> servers = {
        {"s", "s", "", {tool("send_mail", text), tool("z_mail_send", "Sends mail.")}}};
    auto found = json::parse(search_in(servers, "send mail", 5, false));
    ASSERT_EQ(found.size(), 2U) << text;
    EXPECT_EQ(found[0]["tool"], "z_mail_send") << text;
  }
  std::vector<server_documents> servers = {
      {"s", "s", "", {tool("send_mail", "Replaces the deprecated mailer."), tool("z_mail", "")}}};
  EXPECT_EQ(json::parse(search_in(servers, "send mail", 5, false))[0]["tool"], "send_mail");
}

TEST(search, the_work_is_done_once_for_all_searches) {
  server_documents server{"big", "big", "", {}};
  for (int i = 0; i < 3000; ++i) {
    server.tools.push_back(tool("tool_number_" + std::to_string(i),
                                "Does the thing called " + std::to_string(i) +
                                    " with a path, the repository and the words of the user.",
                                R"({"properties":{"path":{"type":"string"}}})"));
  }
  auto start = std::chrono::steady_clock::now();
  tool_index index{server};
  auto built = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(search_tool_documents({&index}, "the thing of repository 77", 5, false), "[]");
  }
  auto searched = std::chrono::steady_clock::now();
  EXPECT_LT(searched - built, 5 * (built - start)) << "ten searches";
}

} // namespace
} // namespace bulkhead
