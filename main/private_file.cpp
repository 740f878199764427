#include "main/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "main/output.hpp"

namespace bulkhead {

namespace {

tl::unexpected<error> failed(std::string_view what, const std::string& path, int cause) {
  return fail(errc::unavailable, fmt::format("{} \"{}\": {}", what, path, std::strerror(cause)));
}

} // namespace

expected<void> write_private_file(const std::string& folder, const std::string& name,
                                  std::string_view text, mode_t mode) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path{folder}.parent_path(), failure);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("make the folder", folder, errno);
  }
  // Its ending is none that a configuration has, should we be stopped half-way.
  auto draft = fmt::format("{}/.{}.{}.new", folder, name, ::getpid());
  auto target = fmt::format("{}/{}", folder, name);
  ::unlink(draft.c_str());
  int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return failed("write", draft, errno);
  }
  int cause = write_all(fd, text);
  if (cause == 0 && (::fchmod(fd, mode) != 0 || ::fsync(fd) != 0)) {
    cause = errno;
  }
  ::close(fd);
  if (cause == 0 && ::rename(draft.c_str(), target.c_str()) != 0) {
    cause = errno;
  }
  if (cause != 0) {
    ::unlink(draft.c_str());
    return failed("write", target, cause);
  }
  return {};
}

expected<void> make_private_folder(const std::string& path) {
  auto parent = path.substr(0, path.rfind('/'));
  for (const auto& each : {parent, path}) {
    if (::mkdir(each.c_str(), 0700) != 0 && errno != EEXIST) {
      return failed("make the folder", each, errno);
    }
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return fail(
        errc::unavailable,
        fmt::format("\"{}\" must be a folder, and no link: nobody else may look into it", path));
  }
  if (info.st_uid != ::geteuid()) {
    return fail(errc::unavailable,
                fmt::format("the folder \"{0}\" belongs to another account; as root: chown -R {1} "
                            "\"{0}\"",
                            path, ::geteuid()));
  }
  if (::chmod(path.c_str(), 0700) != 0) {
    return failed("keep from others the folder", path, errno);
  }
  return {};
}

} // namespace bulkhead
