#include "actors/process_usage.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace bulkhead {

namespace {

// Fields of /proc/PID/stat, counted from the one after the program's name (the third, "state").
constexpr std::size_t utime = 11;
constexpr std::size_t stime = 12;
constexpr std::size_t num_threads = 17;
constexpr std::size_t vsize = 20;
constexpr std::size_t rss = 21;

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size() ? std::optional{value}
                                                                    : std::nullopt;
}

} // namespace

std::optional<process_usage> parse_process_stat(std::string_view stat, std::uint64_t page_size,
                                                std::uint64_t ticks_per_second) {
  // The name is in parentheses, and may have some of its own.
  auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  std::istringstream text{std::string{stat.substr(name_end + 1)}};
  std::vector<std::string> fields{std::istream_iterator<std::string>{text}, {}};
  std::array<std::uint64_t, 5> values{};
  std::size_t next = 0;
  for (auto which : {utime, stime, num_threads, vsize, rss}) {
    auto value = which < fields.size() ? number(fields[which]) : std::nullopt;
    if (!value) {
      return std::nullopt;
    }
    values[next++] = *value;
  }
  process_usage result;
  result.cpu_seconds =
      static_cast<double>(values[0] + values[1]) / static_cast<double>(ticks_per_second);
  result.threads = values[2];
  result.virtual_bytes = values[3];
  result.resident_bytes = values[4] * page_size;
  return result;
}

std::optional<process_usage> read_process_usage() {
  std::ifstream file{"/proc/self/stat"};
  std::string stat{std::istreambuf_iterator<char>{file}, {}};
  auto result = parse_process_stat(stat, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
                                   static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
  std::error_code failure;
  using walk = std::filesystem::directory_iterator;
  for (walk each{"/proc/self/fd", failure}; result && !failure && each != walk{};
       each.increment(failure)) {
    ++result->descriptors;
  }
  return result;
}

} // namespace bulkhead
