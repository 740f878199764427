#include "protocol/tool_relevance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace bulkhead {

namespace {

// Okapi BM25 (Robertson and Zaragoza, 2009) with its usual constants.
constexpr double saturation = 1.2;
constexpr double length_weight = 0.75;
/// Of the columns, in their order.
constexpr std::array<double, 5> column_weights = {3, 2, 1, 0.4, 0.6};

/// What is the same for all rows of a query.
struct query_facts {
  double average_length = 1;
  std::vector<double> rarity; ///< of each phrase
};

int count_row(const Fts5ExtensionApi*, Fts5Context*, void* counter) {
  ++*static_cast<std::int64_t*>(counter);
  return SQLITE_OK;
}

std::unique_ptr<query_facts> facts_of(const Fts5ExtensionApi* api, Fts5Context* context) {
  auto facts = std::make_unique<query_facts>();
  sqlite3_int64 rows = 0;
  sqlite3_int64 tokens = 0;
  if (api->xRowCount(context, &rows) != SQLITE_OK ||
      api->xColumnTotalSize(context, -1, &tokens) != SQLITE_OK) {
    return nullptr;
  }
  auto size = static_cast<double>(rows);
  facts->average_length = std::max(1.0, static_cast<double>(tokens) / std::max(1.0, size));
  for (int phrase = 0; phrase < api->xPhraseCount(context); ++phrase) {
    std::int64_t count = 0;
    if (api->xQueryPhrase(context, phrase, &count, count_row) != SQLITE_OK) {
      return nullptr;
    }
    auto matching = static_cast<double>(count);
    facts->rarity.push_back(std::log(1 + (size - matching + 0.5) / (matching + 0.5)));
  }
  return facts;
}

/// The weighted number of each phrase's occurrences in the row; false when that can't be told.
bool count_phrases(const Fts5ExtensionApi* api, Fts5Context* context, std::vector<double>& counts) {
  int instances = 0;
  if (api->xInstCount(context, &instances) != SQLITE_OK) {
    return false;
  }
  for (int i = 0; i < instances; ++i) {
    int phrase = 0;
    int column = 0;
    int offset = 0;
    if (api->xInst(context, i, &phrase, &column, &offset) != SQLITE_OK) {
      return false;
    }
    counts.at(static_cast<std::size_t>(phrase)) +=
        column_weights.at(static_cast<std::size_t>(column));
  }
  return true;
}

void relevance(const Fts5ExtensionApi* api, Fts5Context* context, sqlite3_context* result, int,
               sqlite3_value**) {
  auto* facts = static_cast<query_facts*>(api->xGetAuxdata(context, 0));
  if (facts == nullptr) {
    facts = facts_of(api, context).release();
    auto forget = [](void* all) { delete static_cast<query_facts*>(all); };
    if (facts == nullptr || api->xSetAuxdata(context, facts, forget) != SQLITE_OK) {
      // SQLite has deleted what it didn't take.
      sqlite3_result_error_nomem(result);
      return;
    }
  }
  std::vector<double> counts(facts->rarity.size());
  int length = 0;
  if (!count_phrases(api, context, counts) || api->xColumnSize(context, -1, &length) != SQLITE_OK) {
    sqlite3_result_error_nomem(result);
    return;
  }
  auto norm = saturation * (1 - length_weight + length_weight * length / facts->average_length);
  double score = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    score = std::max(score, facts->rarity[i] * counts[i] * (saturation + 1) / (counts[i] + norm));
  }
  sqlite3_result_double(result, score);
}

} // namespace

int add_tool_relevance(sqlite3* db) {
  fts5_api* api = nullptr;
  sqlite3_stmt* ask = nullptr;
  auto code = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &ask, nullptr);
  if (code == SQLITE_OK) {
    sqlite3_bind_pointer(ask, 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
    sqlite3_step(ask);
  }
  sqlite3_finalize(ask);
  if (code != SQLITE_OK || api == nullptr) {
    return code != SQLITE_OK ? code : SQLITE_ERROR;
  }
  return api->xCreateFunction(api, "relevance", nullptr, relevance, nullptr);
}

} // namespace bulkhead
