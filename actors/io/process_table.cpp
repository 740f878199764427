#include "actors/io/process_table.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>

#include "actors/io/spawn.hpp"

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

/// A file's bytes, as many as can be read: a process may end while its files are read, at which a
/// standard stream would throw.
std::string read_all(const std::string& path) {
  std::string text;
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> buffer{};
  for (;;) {
    auto count = ::read(file.get(), buffer.data(), buffer.size());
    if (count <= 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
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
    auto block = read_all("/proc/" + std::string{name} + "/environ");
    if (auto value = value_in(block, variable); !value.empty()) {
      found.push_back({pid, std::move(value)});
    }
  }
  return found;
}

} // namespace bulkhead::io
