#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// The words of a text as search compares them: lower case, humps apart (readFile, HTTPServer),
/// plural forms in the singular. Bytes of other scripts' letters count as letters.
std::vector<std::string> search_words(std::string_view text);

} // namespace bulkhead
