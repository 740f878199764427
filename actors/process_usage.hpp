#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// What this process uses, as the kernel says.
struct process_usage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t descriptors = 0;
  double cpu_seconds = 0; ///< user and system
  friend bool operator==(const process_usage&, const process_usage&) = default;
};

/// Reads /proc/self; nothing where there is none.
std::optional<process_usage> read_process_usage();

/// Reads the text of /proc/PID/stat (proc(5)), without the descriptors, which it doesn't tell.
std::optional<process_usage> parse_process_stat(std::string_view stat, std::uint64_t page_size,
                                                std::uint64_t ticks_per_second);

} // namespace bulkhead
