#include "actors/instance.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace bulkhead {

namespace {

bool is_instance_name(std::string_view name) {
  return name.size() == 16 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string lock_path(std::string_view runtime_dir, std::string_view instance) {
  return fmt::format("{}/{}/lock", runtime_dir, instance);
}

} // namespace

expected<instance_lock> instance_lock::acquire(std::string_view runtime_dir,
                                               std::string_view instance) {
  auto folder = fmt::format("{}/{}", runtime_dir, instance);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errc::unavailable, fmt::format("make folder \"{}\": {}", folder, strerror(errno)));
  }
  auto path = lock_path(runtime_dir, instance);
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return fail(errc::unavailable, fmt::format("open lock \"{}\": {}", path, strerror(errno)));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    auto cause = errno;
    ::close(fd);
    return fail(errc::unavailable, fmt::format("take lock \"{}\": {}", path, strerror(cause)));
  }
  return instance_lock{std::move(folder), fd};
}

instance_lock::instance_lock(instance_lock&& other) noexcept
    : folder_{std::move(other.folder_)}, descriptor_{std::exchange(other.descriptor_, -1)} {}

instance_lock& instance_lock::operator=(instance_lock&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

instance_lock::~instance_lock() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

bool instance_alive(std::string_view runtime_dir, std::string_view instance) {
  if (!is_instance_name(instance)) {
    return false;
  }
  int fd = ::open(lock_path(runtime_dir, instance).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    return false;
  }
  bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return held;
}

std::vector<std::string> known_instances(std::string_view runtime_dir) {
  std::vector<std::string> result;
  std::unique_ptr<DIR, int (*)(DIR*)> dir{::opendir(std::string{runtime_dir}.c_str()), ::closedir};
  while (dir) {
    const auto* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      break;
    }
    if (is_instance_name(entry->d_name)) {
      result.emplace_back(entry->d_name);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace bulkhead
