// Search among 1,500 tools of 50 servers: what people ask for is among the first five. The servers
// are made by tests/support/many_servers.py, the questions stand in many_questions.json.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/search_words.hpp"
#include "protocol/tool_search.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

constexpr std::size_t first = 5;
constexpr std::size_t questions_asked = 60;
constexpr std::size_t questions_to_answer = 50;

/// Documents with what is worked out of them.
struct shelf {
  explicit shelf(server_documents all) : documents{std::move(all)}, index{documents} {}
  server_documents documents;
  tool_index index;
};

json read_json(const char* path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return json::parse(in);
}

std::vector<std::shared_ptr<shelf>> many_servers() {
  std::vector<std::shared_ptr<shelf>> result;
  for (const auto& server : read_json(BULKHEAD_MANY_SERVERS)) {
    auto page = parse_tool_page(json{{"tools", server["tools"]}}.dump());
    auto name = server["name"].get<std::string>();
    server_documents documents{name, name, server["description"], page.value().tools};
    assign_tool_aliases(documents.tools);
    result.push_back(std::make_shared<shelf>(std::move(documents)));
  }
  return result;
}

std::string singular(std::string word) {
  if (word.size() > 3 && word.back() == 's') {
    word.pop_back();
  }
  return word;
}

TEST(discovery, no_question_has_a_word_of_its_tools_name) {
  auto questions = read_json(BULKHEAD_QUESTIONS);
  ASSERT_EQ(questions.size(), questions_asked);
  for (const auto& each : questions) {
    auto name = search_words(each["tool"].get<std::string>());
    std::transform(name.begin(), name.end(), name.begin(), singular);
    for (const auto& word : search_words(each["question"].get<std::string>())) {
      EXPECT_EQ(std::find(name.begin(), name.end(), singular(word)), name.end())
          << each["question"] << " names " << word << " of " << each["tool"];
    }
  }
}

TEST(discovery, the_right_tool_is_among_the_first_five) {
  auto servers = many_servers();
  std::size_t tools = 0;
  tool_search search;
  for (const auto& server : servers) {
    tools += server->index.size();
    search.put({server, &server->index});
  }
  EXPECT_EQ(servers.size(), 50U);
  EXPECT_EQ(tools, 1500U);
  std::size_t answered = 0;
  std::vector<double> milliseconds;
  for (const auto& each : read_json(BULKHEAD_QUESTIONS)) {
    auto begin = std::chrono::steady_clock::now();
    auto hits = search.find(each["question"].get<std::string>(), first);
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    auto found = std::find_if(hits.begin(), hits.end(), [&](const tool_hit& hit) {
      return hit.server->documents().server == each["server"] &&
             hit.document().name == each["tool"];
    });
    if (found != hits.end()) {
      ++answered;
    } else {
      std::cout << "not found: " << each["question"] << " (" << each["tool"] << ")\n";
      for (const auto& hit : hits) {
        std::cout << "  " << hit.score << " " << hit.document().name << "\n";
      }
    }
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::cout << answered << " of " << questions_asked << " in the first five; a search takes "
            << milliseconds[milliseconds.size() / 2] << " ms, at most " << milliseconds.back()
            << "\n";
  EXPECT_GE(answered, questions_to_answer);
}

} // namespace
} // namespace bulkhead
