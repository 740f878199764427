#pragma once

#include <sqlite3.h>

namespace bulkhead {

/// Adds the function `relevance(tools)` to a database, for queries of an FTS5 table with the
/// columns name, title, description, parameters, server: Okapi BM25 with a weight for each column,
/// higher being better. Of phrases joined by OR, which are ways to say one thing, the best counts.
/// Other than FTS5's own bm25(), it ranks also where a word is in most of the rows, as it is among
/// the few tools of one server. Answers an SQLite result code.
int add_tool_relevance(sqlite3* db);

} // namespace bulkhead
