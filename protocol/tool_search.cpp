#include "protocol/tool_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "protocol/edit_distance.hpp"
#include "protocol/search_words.hpp"
#include "protocol/tool_encoding.hpp"
#include "protocol/tool_relevance.hpp"

namespace bulkhead {

namespace {

constexpr const char* const schema =
    "CREATE VIRTUAL TABLE tools USING fts5(name, title, description, parameters, server, "
    "tokenize = 'porter unicode61 remove_diacritics 2', prefix = '3 4');"
    "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, tools, row)";
constexpr const char* const ranking = "SELECT rowid, relevance(tools) FROM tools "
                                      "WHERE tools MATCH ?1 AND rowid BETWEEN ?2 AND ?3";

// What a word is worth by how it got into the query.
constexpr double prefix_worth = 0.4;
constexpr double synonym_worth = 0.6;
constexpr double misspelling_worth = 0.6;
/// Enough to stand behind any tool that fits about as well.
constexpr double deprecated_worth = 0.4;
/// How much of the score depends on how many of the query's words were found.
constexpr double coverage_worth = 0.5;

constexpr std::size_t shortest_prefix = 3;
constexpr std::size_t shortest_misspelling = 4;
constexpr std::size_t most_query_words = 16;
constexpr std::uint32_t most_results = 50;
/// Of one tool, and of one server; what is said later in a text says less.
constexpr std::size_t most_words = 400;
constexpr std::size_t most_server_words = 1'000'000;
constexpr std::size_t longest_word = 64;
/// Words of the index that are compared with one that isn't in it.
constexpr int most_compared_terms = 20'000;
constexpr std::size_t most_guesses = 3;

/// A tool's row is its server's slot and its place among the server's tools.
constexpr std::int64_t rows_of_slot = std::int64_t{1} << 24;

[[noreturn]] void give_up(sqlite3* db) {
  throw std::runtime_error(fmt::format("the index of tools failed: {}", sqlite3_errmsg(db)));
}

/// A prepared statement, reset after each use.
class statement {
public:
  statement(sqlite3* db, const char* sql) : db_{db} {
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr) !=
        SQLITE_OK) {
      give_up(db);
    }
  }
  ~statement() { sqlite3_finalize(handle_); }
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  statement& bind(int index, std::int64_t value) {
    sqlite3_bind_int64(handle_, index, value);
    return *this;
  }
  /// The text must stay where it is until the statement has run.
  statement& bind(int index, std::string_view text) {
    sqlite3_bind_text64(handle_, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
  }

  /// Runs it to its end; `row` is called for each row.
  template <class Row>
  void run(Row row) {
    int code = sqlite3_step(handle_);
    for (; code == SQLITE_ROW; code = sqlite3_step(handle_)) {
      row(handle_);
    }
    sqlite3_reset(handle_);
    if (code != SQLITE_DONE) {
      give_up(db_);
    }
  }
  void run() {
    run([](sqlite3_stmt*) {});
  }

private:
  sqlite3* db_;
  sqlite3_stmt* handle_ = nullptr;
};

struct database {
  database() {
    // The tables of a database in memory are nobody else's: no locks are needed.
    if (sqlite3_open_v2(":memory:", &handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        nullptr) != SQLITE_OK ||
        add_tool_relevance(handle) != SQLITE_OK ||
        sqlite3_exec(handle, schema, nullptr, nullptr, nullptr) != SQLITE_OK) {
      std::string why = handle != nullptr ? sqlite3_errmsg(handle) : "no memory";
      sqlite3_close(handle);
      throw std::runtime_error("the index of tools can't be made: " + why);
    }
  }
  ~database() { sqlite3_close(handle); }
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  void run(const char* sql) {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      give_up(handle);
    }
  }

  sqlite3* handle = nullptr;
};

/// Texts made of words, as many as are left to be had.
class word_writer {
public:
  explicit word_writer(std::size_t& left) : left_{left} {}

  void begin_tool() { tool_left_ = most_words; }

  std::string words(std::string_view text) {
    std::string out;
    for (const auto& word : search_words(text)) {
      append(out, word);
    }
    return out;
  }

  /// A name counts in parts and as one word, so that "readfile" finds read_file.
  std::string name(std::string_view text) {
    auto parts = search_words(text);
    auto out = words(text);
    if (parts.size() > 1) {
      append(out, std::accumulate(parts.begin(), parts.end(), std::string{}));
    }
    return out;
  }

  /// Names and descriptions of the parameters.
  std::string parameters(std::string_view schema_text) {
    auto document = nlohmann::json::parse(schema_text, nullptr, false);
    auto properties = document.is_object() ? document.find("properties") : document.end();
    if (!document.is_object() || properties == document.end() || !properties->is_object()) {
      return {};
    }
    std::string out;
    for (const auto& [name, property] : properties->items()) {
      out += words(name) + ' ';
      auto text = property.is_object() ? property.find("description") : property.end();
      if (property.is_object() && text != property.end() && text->is_string()) {
        out += words(text->get_ref<const std::string&>()) + ' ';
      }
    }
    return out;
  }

private:
  void append(std::string& out, std::string_view word) {
    if (left_ > 0 && tool_left_ > 0 && word.size() <= longest_word) {
      --left_;
      --tool_left_;
      out += word;
      out += ' ';
    }
  }

  std::size_t& left_; ///< of the server
  std::size_t tool_left_ = most_words;
};

/// `"word"`, as FTS5 takes it; words have no quotes.
std::string phrase_of(std::string_view word) {
  return '"' + std::string{word} + '"';
}

std::vector<std::string> words_of_query(std::string_view query) {
  auto words = search_words(query);
  std::erase_if(words, [](const auto& word) { return word.size() > longest_word; });
  auto meaningful = words;
  std::erase_if(meaningful, [](const auto& word) { return is_filler(word); });
  if (!meaningful.empty()) {
    words = std::move(meaningful);
  }
  std::vector<std::string> result;
  for (auto& word : words) {
    if (result.size() < most_query_words &&
        std::find(result.begin(), result.end(), word) == result.end()) {
      result.push_back(std::move(word));
    }
  }
  return result;
}

} // namespace

struct tool_search::parts {
  database db;
  statement insert{db.handle, "INSERT INTO tools(rowid, name, title, description, parameters, "
                              "server) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"};
  statement erase{db.handle, "DELETE FROM tools WHERE rowid BETWEEN ?1 AND ?2"};
  statement rank{db.handle, ranking};
  statement terms{db.handle, "SELECT term FROM terms WHERE term >= ?1 AND term < ?2 LIMIT ?3"};
  std::map<std::int64_t, std::shared_ptr<const tool_index>> slots;
  std::int64_t next_slot = 1;

  using scores = std::unordered_map<std::int64_t, double>; ///< by row

  /// What a search looks through.
  struct range {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  std::int64_t slot_of(std::string_view server) const {
    auto found = std::find_if(slots.begin(), slots.end(), [&](const auto& slot) {
      return slot.second->documents().server == server;
    });
    return found != slots.end() ? found->first : 0;
  }

  static range range_of(std::int64_t slot) {
    return {slot * rows_of_slot, (slot + 1) * rows_of_slot - 1};
  }

  void erase_slot(std::int64_t slot) {
    auto rows = range_of(slot);
    erase.bind(1, rows.first).bind(2, rows.last).run();
    slots.erase(slot);
  }

  void insert_tools(std::int64_t slot, const server_documents& server) {
    auto left = most_server_words;
    word_writer writer{left};
    auto about = writer.words(server.server + ' ' + server.description);
    for (std::size_t i = 0; i < server.tools.size(); ++i) {
      const auto& tool = server.tools[i];
      writer.begin_tool();
      auto name = writer.name(tool.name);
      auto title = writer.words(tool.title);
      auto description = writer.words(tool.description);
      auto parameters = writer.parameters(tool.input_schema);
      insert.bind(1, slot * rows_of_slot + static_cast<std::int64_t>(i))
          .bind(2, name)
          .bind(3, title)
          .bind(4, description)
          .bind(5, parameters)
          .bind(6, about)
          .run();
    }
  }

  /// Raises the scores of what matches to `worth` times its rank; false if nothing does.
  bool raise(scores& found, const std::string& match, const range& rows, double worth) {
    bool any = false;
    rank.bind(1, match).bind(2, rows.first).bind(3, rows.last).run([&](sqlite3_stmt* row) {
      auto& score = found[sqlite3_column_int64(row, 0)];
      score = std::max(score, worth * sqlite3_column_double(row, 1));
      any = true;
    });
    return any;
  }

  scores score_word(const std::string& word, const range& rows) {
    scores found;
    raise(found, phrase_of(word), rows, 1);
    if (word.size() >= shortest_prefix) {
      raise(found, phrase_of(word) + " *", rows, prefix_worth);
    }
    std::string others;
    for (auto synonym : synonyms_of(word)) {
      others += (others.empty() ? "" : " OR ") + phrase_of(synonym);
    }
    if (!others.empty()) {
      raise(found, others, rows, synonym_worth);
    }
    if (found.empty() && word.size() >= shortest_misspelling) {
      for (const auto& term : terms_like(word)) {
        raise(found, phrase_of(term), rows, misspelling_worth);
      }
    }
    return found;
  }

  /// Words of the index that begin with the same letter and are spelled much like this.
  std::vector<std::string> terms_like(const std::string& word) {
    const std::size_t tolerance = word.size() < 6 ? 1 : 2;
    std::vector<std::pair<std::size_t, std::string>> close;
    auto first = word.substr(0, 1);
    auto end = std::string{static_cast<char>(first[0] + 1)};
    terms.bind(1, first).bind(2, end).bind(3, most_compared_terms).run([&](sqlite3_stmt* row) {
      std::string term{reinterpret_cast<const char*>(sqlite3_column_text(row, 0)),
                       static_cast<std::size_t>(sqlite3_column_bytes(row, 0))};
      // The index has stems: the end of the word says little.
      auto distance = 2 * edit_distance(word, term, tolerance);
      if (term.size() + 2 >= word.size()) {
        auto cut = std::string_view{word}.substr(0, word.size() - 1);
        distance = std::min(distance, 2 * edit_distance(cut, term, tolerance) + 1);
      }
      if (distance <= 2 * tolerance) {
        close.emplace_back(distance, std::move(term));
      }
    });
    std::sort(close.begin(), close.end());
    std::vector<std::string> result;
    for (std::size_t i = 0; i < std::min(close.size(), most_guesses); ++i) {
      result.push_back(std::move(close[i].second));
    }
    return result;
  }
};

tool_search::tool_search() : parts_{std::make_unique<parts>()} {}

tool_search::~tool_search() = default;

void tool_search::put(std::shared_ptr<const tool_index> tools) {
  auto slot = parts_->next_slot++;
  parts_->db.run("BEGIN");
  if (auto old = parts_->slot_of(tools->documents().server)) {
    parts_->erase_slot(old);
  }
  parts_->insert_tools(slot, tools->documents());
  parts_->db.run("COMMIT");
  parts_->slots.emplace(slot, std::move(tools));
}

void tool_search::remove(std::string_view server) {
  if (auto slot = parts_->slot_of(server)) {
    parts_->erase_slot(slot);
  }
}

std::vector<tool_hit> tool_search::find(std::string_view query, std::uint32_t limit,
                                        std::string_view server) {
  parts::range rows{0, parts_->next_slot * rows_of_slot};
  if (!server.empty()) {
    rows = parts::range_of(parts_->slot_of(server));
  }
  struct sum {
    double score = 0;
    std::size_t words = 0;
  };
  std::unordered_map<std::int64_t, sum> sums;
  const auto words = words_of_query(query);
  for (const auto& word : words) {
    for (const auto& [row, score] : parts_->score_word(word, rows)) {
      auto& each = sums[row];
      each.score += score;
      ++each.words;
    }
  }
  std::vector<tool_hit> hits;
  for (const auto& [row, each] : sums) {
    auto& tools = parts_->slots.at(row / rows_of_slot);
    auto tool = static_cast<std::size_t>(row % rows_of_slot);
    auto coverage = static_cast<double>(each.words) / static_cast<double>(words.size());
    hits.push_back({tools, tool,
                    each.score * (1 - coverage_worth + coverage_worth * coverage) *
                        (tools->deprecated(tool) ? deprecated_worth : 1)});
  }
  auto better = [](const tool_hit& a, const tool_hit& b) {
    return a.score != b.score ? a.score > b.score
                              : std::tie(a.server->documents().server, a.document().name) <
                                    std::tie(b.server->documents().server, b.document().name);
  };
  auto kept = std::min<std::size_t>({hits.size(), limit, most_results});
  std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(kept), hits.end(),
                    better);
  hits.resize(kept);
  return hits;
}

std::string encode_tool_hits(const std::vector<tool_hit>& hits, bool full_detail,
                             const std::function<std::string(const server_documents&)>& hint) {
  std::string out = "[";
  for (const auto& each : hits) {
    out += out.size() > 1 ? "," : "";
    append_tool_document(out, each.server->documents(), each.document(),
                         each.server->signature(each.tool), full_detail,
                         {fmt::format("{:.3f}", each.score), hint(each.server->documents())});
  }
  return out + "]";
}

} // namespace bulkhead
