#include "actors/user_bus.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

namespace bulkhead {

std::optional<std::string> user_bus(uid_t account, const std::string& runtime_dirs) {
  auto path = fmt::format("{}/{}/bus", runtime_dirs, account);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode) || info.st_uid != account) {
    return std::nullopt;
  }
  return "unix:path=" + path;
}

} // namespace bulkhead
