#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace bulkhead::io {

/// A process whose environment carries a variable of ours.
struct marked_process {
  pid_t pid;
  std::string value;
};

/// The environment variable that marks every upstream server and what it starts; its value is
/// "INSTANCE/SERIAL". It finds descendants that left their process group, and orphans of a
/// Bulkhead that was killed.
inline constexpr std::string_view child_marker = "BULKHEAD_CHILD";

/// All processes of this account whose environment has `variable`, from /proc. Processes that can't
/// be read (other accounts) are left out.
std::vector<marked_process> processes_marked_with(std::string_view variable);

} // namespace bulkhead::io
