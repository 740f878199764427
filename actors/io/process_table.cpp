#include "actors/io/process_table.hpp"

#include <dirent.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>

namespace bulkhead::io {

namespace {

/// The value of NAME in the environment block of a process (NAME=VALUE, zero-terminated each).
std::string value_in(std::string_view block, std::string_view name) {
  while (!block.empty()) {
    auto end = std::min(block.find('\0'), block.size());
    auto entry = block.substr(0, end);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string{entry.substr(name.size() + 1)};
    }
    block.remove_prefix(std::min(end + 1, block.size()));
  }
  return {};
}

} // namespace

std::vector<marked_process> processes_marked_with(std::string_view variable) {
  std::vector<marked_process> found;
  std::unique_ptr<DIR, int (*)(DIR*)> proc{::opendir("/proc"), ::closedir};
  while (proc) {
    const auto* entry = ::readdir(proc.get());
    if (entry == nullptr) {
      break;
    }
    std::string_view name = entry->d_name;
    pid_t pid = 0;
    auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure != std::errc{} || end != name.data() + name.size()) {
      continue;
    }
    std::ifstream file{"/proc/" + std::string{name} + "/environ", std::ios::binary};
    std::string block{std::istreambuf_iterator<char>{file}, {}};
    if (auto value = value_in(block, variable); !value.empty()) {
      found.push_back({pid, std::move(value)});
    }
  }
  return found;
}

} // namespace bulkhead::io
