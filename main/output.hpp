#pragma once

#include <string_view>

namespace bulkhead {

/// Writes all of `text`, waiting where the descriptor makes it wait. What can't be written is
/// dropped.
void write_all(int fd, std::string_view text);

} // namespace bulkhead
