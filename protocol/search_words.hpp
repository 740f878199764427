#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// The words of a text as search sees them: lower case, humps apart (readFile, HTTPServer). Bytes
/// of other scripts' letters count as letters.
std::vector<std::string> search_words(std::string_view text);

/// Says little about what is looked for: "the", "which", "my". English, lower case.
bool is_filler(std::string_view word);

/// Other words that people say for `word` when they speak of programs and everyday things, itself
/// left out; English, in the form of a dictionary, which the index's stemmer brings together with
/// others.
std::vector<std::string_view> synonyms_of(std::string_view word);

} // namespace bulkhead
