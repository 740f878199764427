#include "actors/artifact_guard.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "actors/artifact_files.hpp"
#include "protocol/resource_uri.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Others hold it for milliseconds, unless they hang.
constexpr auto lock_patience = 2s;
constexpr auto lock_pause = 2ms;
/// Two numbers of 20 digits, a space between them and a newline.
constexpr std::size_t record_size = 42;

std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

} // namespace

expected<unique_descriptor> open_artifact_root(const std::string& root, bool make) {
  auto refused = [&](std::string_view why) {
    return fail(errc::unavailable, fmt::format("the folder \"{}\": {}", root, why));
  };
  if (make && ::mkdir(root.c_str(), 0700) != 0 && errno != EEXIST) {
    return refused(std::strerror(errno));
  }
  unique_descriptor folder{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (!folder && errno == ENOENT && !make) {
    return fail(errc::not_found, "nothing is kept");
  }
  if (!folder) {
    return refused(std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) {
    return refused("it belongs to another account; remove it");
  }
  if ((info.st_mode & 0777) != 0700 && ::fchmod(folder.get(), 0700) != 0) {
    return refused(std::strerror(errno));
  }
  return folder;
}

std::vector<run_folder> run_folders(int root) {
  std::vector<run_folder> all;
  for_each_entry(root, [&](const std::string& name) {
    struct stat info {};
    if (is_handle(name) && ::fstatat(root, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode)) {
      all.push_back(
          {name, info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec});
    }
  });
  std::sort(all.begin(), all.end(), [](const run_folder& a, const run_folder& b) {
    return std::tie(a.changed, a.handle) < std::tie(b.changed, b.handle);
  });
  return all;
}

artifact_usage measure_run(int folder) {
  artifact_usage all;
  for_each_entry(folder, [&](const std::string& name) {
    all.bytes += size_of(folder, name);
    all.items += is_about(name) ? 0 : 1;
  });
  return all;
}

expected<artifact_guard> artifact_guard::take(unique_descriptor root) {
  unique_descriptor lock{
      ::openat(root.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!lock) {
    return fail(errc::unavailable, std::strerror(errno));
  }
  for (auto waited = 0ms; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; waited += lock_pause) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail(errc::unavailable, std::strerror(errno));
    }
    if (waited >= lock_patience) {
      return fail(errc::unavailable, "another process keeps its lock (artifacts/lock)");
    }
    std::this_thread::sleep_for(lock_pause);
  }
  artifact_guard held{std::move(root), std::move(lock)};
  if (!held.read_record()) {
    held.counted_ = true;
    for (const auto& each : run_folders(held.root())) {
      if (auto folder = open_folder(held.root(), each.handle)) {
        const auto size = measure_run(folder.get());
        held.now_.bytes += size.bytes;
        held.now_.items += size.items;
      }
    }
    // Room for the record is taken before anything else is.
    int cause = 0;
    const std::string blank(record_size, ' ');
    if (write_at(held.lock_.get(), blank, 0, cause) < blank.size()) {
      return fail(errc::unavailable, std::strerror(cause));
    }
  }
  return held;
}

bool artifact_guard::read_record() {
  std::array<char, record_size> text{};
  if (::pread(lock_.get(), text.data(), text.size(), 0) != record_size || text.back() != '\n') {
    return false;
  }
  const std::string_view record{text.data(), text.size()};
  now_ = recorded_ = {number_at(record.substr(0, 20)), number_at(record.substr(21, 20))};
  return true;
}

void artifact_guard::write_record() {
  int cause = 0;
  const auto record = fmt::format("{:020} {:020}\n", now_.bytes, now_.items);
  if (write_at(lock_.get(), record, 0, cause) < record.size()) {
    // Whoever comes next counts.
    std::ignore = ::ftruncate(lock_.get(), 0);
  }
  recorded_ = now_;
  counted_ = false;
}

void artifact_guard::add(std::uint64_t bytes, std::uint64_t items) {
  now_.bytes += bytes;
  now_.items += items;
  write_record();
}

artifact_guard::~artifact_guard() {
  if (lock_ && (counted_ || !(now_ == recorded_))) {
    write_record();
  }
}

} // namespace bulkhead
