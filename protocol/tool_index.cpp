#include "protocol/tool_index.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/search_words.hpp"

namespace bulkhead {

namespace {

constexpr double name_weight = 3;
constexpr double title_weight = 2;
constexpr double text_weight = 1;
/// What a query word that only begins a document's word is worth, and how long it must be.
constexpr double prefix_weight = 0.4;
constexpr std::size_t shortest_prefix = 3;
/// Of one tool; what is said later in a text says less.
constexpr std::size_t most_words = 1000;

/// "DEPRECATED" anywhere in capitals, "Deprecated: …", "[deprecated] …", "… is deprecated …"; not a
/// tool that replaces a deprecated one.
bool tells_deprecation(std::string_view text) {
  constexpr std::string_view word = "eprecated";
  if (text.find("DEPRECATED") != std::string_view::npos) {
    return true;
  }
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    auto before = text.substr(0, at - std::min<std::size_t>(at, 1));
    bool begins = std::none_of(before.begin(), before.end(), [](char c) {
      return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    });
    if (at > 0 && (text[at - 1] | 32) == 'd' && (begins || before.ends_with(" is "))) {
      return true;
    }
  }
  return false;
}

} // namespace

class tool_index::builder {
public:
  explicit builder(tool_index& index) : index_{index} {}

  void add_tool(const server_documents& server, const tool_document& tool) {
    words_ = 0;
    index_.lengths_.push_back(0);
    add_name(tool.name);
    add(server.server, text_weight);
    add(tool.title, title_weight);
    add(tool.description, text_weight);
    add_parameters(tool.input_schema);
    index_.total_length_ += index_.lengths_.back();
    index_.deprecated_.push_back(tells_deprecation(tool.title) ||
                                 tells_deprecation(tool.description));
    index_.signatures_.push_back(tool_signature(tool));
  }

  /// Sorts the words and what occurs where.
  void finish() {
    std::vector<const std::string*> names(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      names[number] = &name;
    }
    std::vector<std::uint32_t> order(names.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return *names[a] < *names[b]; });
    std::vector<std::uint32_t> rank(names.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      index_.begins_.push_back(static_cast<std::uint32_t>(index_.letters_.size()));
      index_.letters_ += *names[order[i]];
    }
    index_.begins_.push_back(static_cast<std::uint32_t>(index_.letters_.size()));
    for (auto& each : found_) {
      each.word = rank[each.word];
    }
    // Stable: the tools of a word stay in order.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.word < b.word; });
    merge();
  }

private:
  void add_word(std::string word, double weight, bool counts) {
    if (++words_ > most_words) {
      return;
    }
    auto number = static_cast<std::uint32_t>(numbers_.size());
    number = numbers_.try_emplace(std::move(word), number).first->second;
    found_.push_back({number, static_cast<std::uint32_t>(index_.lengths_.size() - 1),
                      static_cast<float>(weight)});
    index_.lengths_.back() += counts ? weight : 0;
  }

  void add(std::string_view text, double weight) {
    for (auto& word : search_words(text)) {
      add_word(std::move(word), weight, true);
    }
  }

  /// A name counts in parts and as one word, so that "readfile" finds read_file.
  void add_name(std::string_view name) {
    auto parts = search_words(name);
    if (parts.size() > 1) {
      add_word(std::accumulate(parts.begin(), parts.end(), std::string{}), name_weight, false);
    }
    add(name, name_weight);
  }

  void add_parameters(std::string_view schema) {
    auto document = nlohmann::json::parse(schema, nullptr, false);
    if (!document.is_object()) {
      return;
    }
    auto properties = document.find("properties");
    if (properties == document.end() || !properties->is_object()) {
      return;
    }
    for (const auto& [name, property] : properties->items()) {
      add(name, text_weight);
    }
  }

  /// One occurrence for each word of each tool.
  void merge() {
    auto& all = index_.occurrences_;
    for (const auto& each : found_) {
      while (index_.first_.size() <= each.word) {
        index_.first_.push_back(static_cast<std::uint32_t>(all.size()));
      }
      if (!all.empty() && all.back().word == each.word && all.back().tool == each.tool) {
        all.back().weight += each.weight;
      } else {
        all.push_back(each);
      }
    }
    index_.first_.push_back(static_cast<std::uint32_t>(all.size()));
    all.shrink_to_fit();
  }

  tool_index& index_;
  std::unordered_map<std::string, std::uint32_t> numbers_; ///< of words, as they come
  std::vector<occurrence> found_;
  std::size_t words_ = 0; ///< of this tool
};

tool_index::tool_index(const server_documents& documents) : documents_{&documents} {
  builder build{*this};
  for (const auto& tool : documents.tools) {
    build.add_tool(documents, tool);
  }
  build.finish();
}

void tool_index::count(std::string_view wanted, double* counts) const {
  std::size_t low = 0;
  auto high = begins_.size() - 1;
  while (low < high) {
    auto middle = low + (high - low) / 2;
    word(middle) < wanted ? low = middle + 1 : high = middle;
  }
  for (; low + 1 < begins_.size() && word(low).starts_with(wanted); ++low) {
    bool whole = word(low).size() == wanted.size();
    if (!whole && wanted.size() < shortest_prefix) {
      return;
    }
    for (auto at = first_[low]; at < first_[low + 1]; ++at) {
      counts[occurrences_[at].tool] += (whole ? 1 : prefix_weight) * occurrences_[at].weight;
    }
  }
}

} // namespace bulkhead
