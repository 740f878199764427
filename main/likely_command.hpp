#pragma once

#include <string>

namespace CLI {
class App;
}

namespace bulkhead {

/// After parsing has failed: a line that says which command may have been meant by a word that is
/// none; or nothing. Commands that the help doesn't show aren't meant.
std::string likely_command(const CLI::App& app);

} // namespace bulkhead
