#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "protocol/search_words.hpp"
#include "protocol/tool_encoding.hpp"
#include "protocol/tool_index.hpp"

namespace bulkhead {

namespace {

// Okapi BM25 (Robertson and Zaragoza, 2009) with its usual constants; fields count by weight.
constexpr double saturation = 1.2;
constexpr double length_weight = 0.75;
/// Enough to stand behind any tool that fits about as well.
constexpr double deprecated_weight = 0.4;

constexpr std::size_t most_query_words = 32;
constexpr std::uint32_t most_results = 50;

struct hit {
  const tool_index* server;
  std::size_t tool;
  double score;

  const tool_document& document() const { return server->documents().tools[tool]; }
};

std::vector<std::string> words_of_query(std::string_view query) {
  auto words = search_words(query);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  words.resize(std::min(words.size(), most_query_words));
  return words;
}

/// Every tool with its score, the servers one after the other.
std::vector<hit> score_all(const std::vector<const tool_index*>& servers,
                           const std::vector<std::string>& query) {
  std::vector<hit> hits;
  double total_length = 0;
  for (const auto* server : servers) {
    total_length += server->total_length();
    for (std::size_t tool = 0; tool < server->size(); ++tool) {
      hits.push_back({server, tool, 0});
    }
  }
  const auto size = static_cast<double>(hits.size());
  const auto average = std::max(1.0, total_length / std::max(1.0, size));
  std::vector<double> counts(hits.size());
  for (const auto& word : query) {
    std::fill(counts.begin(), counts.end(), 0);
    std::size_t begin = 0;
    for (const auto* server : servers) {
      server->count(word, counts.data() + begin);
      begin += server->size();
    }
    auto matching = size - static_cast<double>(std::count(counts.begin(), counts.end(), 0.0));
    auto rarity = std::log(1 + (size - matching + 0.5) / (matching + 0.5));
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (counts[i] > 0) {
        auto length = hits[i].server->length(hits[i].tool);
        auto norm = 1 - length_weight + length_weight * length / average;
        hits[i].score += rarity * counts[i] * (saturation + 1) / (counts[i] + saturation * norm);
      }
    }
  }
  return hits;
}

bool is_better(const hit& a, const hit& b) {
  return a.score != b.score ? a.score > b.score
                            : std::tie(a.server->documents().server, a.document().name) <
                                  std::tie(b.server->documents().server, b.document().name);
}

} // namespace

std::string search_tool_documents(const std::vector<const tool_index*>& servers,
                                  std::string_view query, std::uint32_t limit, bool full_detail) {
  auto hits = score_all(servers, words_of_query(query));
  std::erase_if(hits, [](const hit& each) { return each.score <= 0; });
  for (auto& each : hits) {
    each.score *= each.server->deprecated(each.tool) ? deprecated_weight : 1;
  }
  auto kept = std::min<std::size_t>({hits.size(), limit, most_results});
  auto end = hits.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(hits.begin(), end, hits.end(), is_better);
  std::string out = "[";
  for (auto each = hits.begin(); each != end; ++each) {
    if (out.size() > 1) {
      out += ',';
    }
    append_tool_document(out, each->server->documents(), each->document(),
                         each->server->signature(each->tool), full_detail,
                         fmt::format("{:.3f}", each->score));
  }
  return out + "]";
}

} // namespace bulkhead
