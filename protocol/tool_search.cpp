#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/tool_encoding.hpp"

namespace bulkhead {

namespace {

// Okapi BM25 (Robertson and Zaragoza, 2009) with its usual constants; fields count by weight.
constexpr double saturation = 1.2;
constexpr double length_weight = 0.75;
constexpr double name_weight = 3;
constexpr double title_weight = 2;
constexpr double text_weight = 1;
/// What a query word that only begins a document's word is worth, and how long it must be.
constexpr double prefix_weight = 0.4;
constexpr std::size_t shortest_prefix = 3;

constexpr std::size_t most_query_words = 32;
constexpr std::uint32_t most_results = 50;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// Bytes of other scripts' letters count as letters.
bool is_word(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
}

/// Plural forms become singular: "issues" → "issue", "queries" → "query"; "class" stays.
std::string stem(std::string word) {
  if (word.size() > 4 && word.ends_with("ies")) {
    word.replace(word.size() - 3, 3, "y");
  } else if (word.size() > 3 && word.back() == 's' && !word.ends_with("ss") &&
             !word.ends_with("us")) {
    word.pop_back();
  }
  return word;
}

/// Does a new word begin at `text[i]`, as in readFile, HTTPServer?
bool is_hump(std::string_view text, std::size_t i) {
  if (i == 0 || !is_upper(text[i])) {
    return false;
  }
  return is_lower(text[i - 1]) || is_digit(text[i - 1]) ||
         (is_upper(text[i - 1]) && i + 1 < text.size() && is_lower(text[i + 1]));
}

/// The words of `text`, lower case, humps apart.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> result;
  std::string word;
  auto end_word = [&] {
    if (!word.empty()) {
      result.push_back(stem(std::move(word)));
      word.clear();
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_word(text[i])) {
      end_word();
      continue;
    }
    if (is_hump(text, i)) {
      end_word();
    }
    word += is_upper(text[i]) ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  }
  end_word();
  return result;
}

/// A document's words with their weighted counts.
struct indexed_tool {
  const server_documents* server = nullptr;
  const tool_document* tool = nullptr;
  std::map<std::string, double> words; ///< sorted, for prefixes
  double length = 0;
  double score = 0;

  void add(std::string_view text, double weight) {
    for (auto& word : words_of(text)) {
      words[std::move(word)] += weight;
      length += weight;
    }
  }

  /// How often `word` occurs; words that it begins count for less.
  double count(const std::string& word) const {
    double result = 0;
    for (auto at = words.lower_bound(word); at != words.end() && at->first.starts_with(word);
         ++at) {
      if (at->first == word) {
        result += at->second;
      } else if (word.size() >= shortest_prefix) {
        result += prefix_weight * at->second;
      }
    }
    return result;
  }
};

/// A name counts in parts and as one word, so that "readfile" finds read_file.
void add_name(indexed_tool& entry, std::string_view name, double weight) {
  entry.add(name, weight);
  auto parts = words_of(name);
  std::string whole;
  for (const auto& part : parts) {
    whole += part;
  }
  if (parts.size() > 1) {
    entry.words[whole] += weight;
  }
}

void add_parameters(indexed_tool& entry, std::string_view schema) {
  auto document = nlohmann::json::parse(schema, nullptr, false);
  if (!document.is_object()) {
    return;
  }
  auto properties = document.find("properties");
  if (properties == document.end() || !properties->is_object()) {
    return;
  }
  for (const auto& [name, property] : properties->items()) {
    entry.add(name, text_weight);
  }
}

std::vector<indexed_tool> index_of(const std::vector<const server_documents*>& servers) {
  std::vector<indexed_tool> result;
  for (const auto* server : servers) {
    for (const auto& tool : server->tools) {
      indexed_tool entry;
      entry.server = server;
      entry.tool = &tool;
      add_name(entry, tool.name, name_weight);
      entry.add(server->server, text_weight);
      entry.add(tool.title, title_weight);
      entry.add(tool.description, text_weight);
      add_parameters(entry, tool.input_schema);
      result.push_back(std::move(entry));
    }
  }
  return result;
}

void score_all(std::vector<indexed_tool>& index, const std::vector<std::string>& query) {
  if (index.empty()) {
    return;
  }
  double total_length = 0;
  for (const auto& entry : index) {
    total_length += entry.length;
  }
  double average = std::max(1.0, total_length / static_cast<double>(index.size()));
  std::vector<double> counts(index.size());
  for (const auto& word : query) {
    std::transform(index.begin(), index.end(), counts.begin(),
                   [&](const indexed_tool& entry) { return entry.count(word); });
    auto matching = static_cast<double>(
        std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; }));
    double rarity =
        std::log(1 + (static_cast<double>(index.size()) - matching + 0.5) / (matching + 0.5));
    for (std::size_t i = 0; i < index.size(); ++i) {
      double norm = 1 - length_weight + length_weight * index[i].length / average;
      index[i].score += rarity * counts[i] * (saturation + 1) / (counts[i] + saturation * norm);
    }
  }
}

} // namespace

std::string search_tool_documents(const std::vector<const server_documents*>& servers,
                                  std::string_view query, std::uint32_t limit, bool full_detail) {
  auto words = words_of(query);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  words.resize(std::min(words.size(), most_query_words));
  auto index = index_of(servers);
  score_all(index, words);
  std::erase_if(index, [](const indexed_tool& entry) { return entry.score <= 0; });
  std::sort(index.begin(), index.end(), [](const indexed_tool& a, const indexed_tool& b) {
    return a.score != b.score ? a.score > b.score
                              : std::tie(a.server->server, a.tool->name) <
                                    std::tie(b.server->server, b.tool->name);
  });
  index.resize(std::min<std::size_t>({index.size(), limit, most_results}));
  std::string out = "[";
  for (const auto& entry : index) {
    if (out.size() > 1) {
      out += ',';
    }
    append_tool_document(out, *entry.server, *entry.tool, full_detail,
                         fmt::format("{:.3f}", entry.score));
  }
  return out + "]";
}

} // namespace bulkhead
