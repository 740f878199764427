#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// Writes all of `text`, waiting where the descriptor makes it wait. Answers the errno of what
/// couldn't be written, the rest of which is dropped; 0 when all was.
int write_all(int fd, std::string_view text);

/// Writes `text` to the descriptor for what was asked for. Answers `status`, or 1 in place of 0
/// after a complaint on stderr when it couldn't be written.
int write_answer(int out, std::string_view text, int status);

/// Says on stderr what went wrong, harmless to a terminal.
void complain(std::string_view message);

} // namespace bulkhead
