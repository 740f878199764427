#include <chrono>
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/tool_search.hpp"

namespace bulkhead {
namespace {

using namespace std::string_view_literals;

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

/// Documents with what is worked out of them.
struct shelf {
  explicit shelf(server_documents all) : documents{std::move(all)}, index{documents} {}
  server_documents documents;
  tool_index index;
};

void put(tool_search& search, const server_documents& server) {
  auto made = std::make_shared<shelf>(server);
  search.put({made, &made->index});
}

std::string search_in(const std::vector<server_documents>& servers, std::string_view query,
                      std::uint32_t limit, bool full_detail) {
  tool_search search;
  for (const auto& server : servers) {
    put(search, server);
  }
  return encode_tool_hits(search.find(query, limit), full_detail,
                          [](const server_documents&) { return ""; });
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

TEST(search, synonyms_count_for_less_than_the_word) {
  EXPECT_EQ(best("retrieve file"), "read_file");
  std::vector<server_documents> servers = {
      {"s", "s", "", {tool("erase_note", "x"), tool("delete_note", "x")}}};
  auto found = json::parse(search_in(servers, "delete", 5, false));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["tool"], "delete_note");
}

TEST(search, a_misspelled_word_finds_what_was_meant) {
  EXPECT_EQ(best("reposiory isue"), "list_issues");
  EXPECT_EQ(best("merg pul reqest"), "merge_pull_request");
  EXPECT_TRUE(search("xqzzvw").empty());
}

TEST(search, words_that_say_nothing_are_left_out) {
  EXPECT_EQ(best("how can i do a merge of the pull request"), "merge_pull_request");
}

TEST(search, of_one_server_only) {
  tool_search all;
  for (const auto& server : catalogue()) {
    put(all, server);
  }
  for (const auto& hit : all.find("file text issue code", 50, "files")) {
    EXPECT_EQ(hit.server->documents().server, "files");
  }
  EXPECT_FALSE(all.find("file", 5, "files").empty());
  EXPECT_TRUE(all.find("file", 5, "nowhere").empty());
}

TEST(search, servers_come_and_go_one_by_one) {
  tool_search all;
  for (const auto& server : catalogue()) {
    put(all, server);
  }
  put(all, {"files", "files", "", {tool("burn_disc", "Burns a disc.")}});
  EXPECT_TRUE(all.find("writes a page", 5, "files").empty());
  EXPECT_EQ(all.find("burn", 5).size(), 1U);
  all.remove("files");
  EXPECT_TRUE(all.find("burn", 5).empty());
  EXPECT_FALSE(all.find("issue", 5).empty());
  all.remove("files");
  all.remove("github");
  EXPECT_TRUE(all.find("issue", 5).empty());
}

TEST(search, what_a_query_holds_is_no_command) {
  for (std::string_view query :
       {"\""sv, "\" OR name:x"sv, "NEAR(a b)"sv, "read*"sv, "-file"sv, "'; DROP TABLE tools"sv,
        "("sv, "name : read"sv, "^read"sv, "a AND"sv, "\xff\xfe"sv, "read\0file"sv}) {
    EXPECT_NO_THROW(search(query)) << query;
  }
  EXPECT_EQ(best("NOT read AND file*"), "read_file");
}

TEST(search, long_texts_are_cut_and_do_no_harm) {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += "word" + std::to_string(i) + " ";
  }
  std::vector<server_documents> servers = {
      {"s", "s", "", {tool("long", text + std::string(100'000, 'x'), "{\"properties\":7}")}}};
  EXPECT_NE(search_in(servers, "word7", 5, false), "[]");
  EXPECT_EQ(search_in(servers, "word4999", 5, false).find("word4999"), std::string::npos);
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
  tool_search all;
  put(all, server);
  auto built = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(all.find("the thing of repository 77", 5).empty());
  }
  auto searched = std::chrono::steady_clock::now();
  EXPECT_LT(searched - built, 5 * (built - start)) << "ten searches";
}

} // namespace
} // namespace bulkhead
