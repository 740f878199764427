#include "actors/trusted_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/limits.hpp"

namespace bulkhead {

namespace {

/// An open descriptor that closes itself.
class descriptor {
public:
  explicit descriptor(int number) : number_{number} {}
  ~descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int number() const { return number_; }

private:
  int number_;
};

tl::unexpected<error> refuse(std::string why) {
  return fail(errc::denied, std::move(why));
}

/// Why a path can't be opened, and what to do.
tl::unexpected<error> cannot_open(const std::string& path, int cause) {
  std::error_code ignored;
  if (cause == ENOENT) {
    auto target = std::filesystem::read_symlink(path, ignored);
    return fail(errc::not_found,
                target.empty()
                    ? std::string{"there is no such file; correct the path or make the file"}
                    : fmt::format("is a link to \"{}\", which doesn't exist; mend or remove it",
                                  target.string()));
  }
  if (cause == ELOOP) {
    return fail(errc::unavailable, "its links lead in a circle; mend or remove them");
  }
  if (cause == EACCES) {
    return fail(errc::unavailable,
                fmt::format("can't be read by uid {}: permission denied; give it to this account, "
                            "readable (chown, chmod u+r)",
                            ::geteuid()));
  }
  return fail(errc::unavailable, fmt::format("can't be read: {}", std::strerror(cause)));
}

/// Is it a group that its owner alone is in, as Debian gives one to every user?
bool is_private_group(gid_t group, uid_t owner) {
  std::vector<char> user_text(16 * kibibyte);
  std::vector<char> group_text(64 * kibibyte);
  passwd user_entry{};
  ::group group_entry{};
  passwd* user = nullptr;
  ::group* found = nullptr;
  ::getpwuid_r(owner, &user_entry, user_text.data(), user_text.size(), &user);
  ::getgrgid_r(group, &group_entry, group_text.data(), group_text.size(), &found);
  if (user == nullptr || found == nullptr || user->pw_gid != group ||
      std::strcmp(user->pw_name, found->gr_name) != 0) {
    return false;
  }
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (std::strcmp(*member, user->pw_name) != 0) {
      return false;
    }
  }
  return true;
}

/// Where a descriptor leads, links resolved.
std::string real_path(int fd) {
  std::error_code ignored;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), ignored).string();
}

bool lies_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

/// Who else may write to this? Empty for nobody. `what` is "it" or names the folder that holds it.
std::string distrust(int fd, const std::string& path, const std::string& what, const trust& who) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return fmt::format("{} can't be examined: {}", what, std::strerror(errno));
  }
  if (info.st_uid != who.account && info.st_uid != 0) {
    return fmt::format("{} belongs to uid {}, neither to this account (uid {}) nor to root; "
                       "chown {} \"{}\"",
                       what, info.st_uid, who.account, who.account, path);
  }
  // In a sticky folder others can't touch what isn't theirs.
  bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & S_IWOTH) != 0 && !sticky) {
    return fmt::format("{} can be written to by everybody; chmod o-w \"{}\"", what, path);
  }
  if ((info.st_mode & S_IWGRP) == 0 || sticky) {
    return {};
  }
  // With an access list the bits of the group are those of all whom the list names.
  auto link = fmt::format("/proc/self/fd/{}", fd); // fgetxattr wants one that was opened to read
  if (::getxattr(link.c_str(), "system.posix_acl_access", nullptr, 0) > 0) {
    return fmt::format(
        "{} can be written to by those whom its access list names; setfacl -b \"{}\"", what, path);
  }
  if (!is_private_group(info.st_gid, info.st_uid)) {
    return fmt::format("{} can be written to by the group {}; chmod g-w \"{}\"", what, info.st_gid,
                       path);
  }
  return {};
}

/// The same for a folder, and whether it lies where guests write.
std::string distrust_folder(const std::string& path, const std::string& what, const trust& who) {
  descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.number() < 0) {
    // One that may be passed through but not be listed can still be judged.
    descriptor passed{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    return passed.number() < 0 ? fmt::format("{} can't be examined: {}", what, std::strerror(errno))
                               : distrust(passed.number(), path, what, who);
  }
  return distrust(folder.number(), path, what, who);
}

std::string in_guest_folder(const std::string& path, const trust& who) {
  for (const auto& folder : who.guest_folders) {
    std::error_code ignored;
    auto real = std::filesystem::weakly_canonical(folder, ignored).string();
    if (lies_below(path, folder) || (!real.empty() && lies_below(path, real))) {
      return fmt::format("lies at \"{}\", in the folder \"{}\" that code in the sandbox can write "
                         "to; keep it elsewhere",
                         path, folder);
    }
  }
  return {};
}

/// An open file's text, with an error that goes well with the file's name before it.
expected<std::string> read_all(int fd, const std::string& path, std::size_t most) {
  auto text = read_descriptor(fd, path, most);
  if (!text && text.error().code == errc::too_large) {
    return fail(errc::too_large, fmt::format("has more than the {} bytes allowed", most));
  }
  return text;
}

} // namespace

bool is_configuration_name(std::string_view name) {
  constexpr std::string_view ending = ".json";
  // Emacs marks a file that is being edited by a link of this form, which leads nowhere.
  if (name.size() < ending.size() || name.starts_with(".#")) {
    return false;
  }
  return lower_case(name.substr(name.size() - ending.size())) == ending;
}

expected<std::string> read_trusted_file(const std::string& path, std::size_t most,
                                        const trust& who) {
  // Without O_NONBLOCK a fifo would block us for ever.
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.number() < 0) {
    return cannot_open(path, errno);
  }
  struct stat info {};
  if (::fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(errc::unavailable, "is no regular file; remove it or give it another name");
  }
  auto real = real_path(file.number());
  if (real.empty()) {
    return refuse("can't be examined: /proc isn't there");
  }
  if (auto why = in_guest_folder(real, who); !why.empty()) {
    return refuse(std::move(why));
  }
  if (auto why = distrust(file.number(), real, "it", who); !why.empty()) {
    return refuse(std::move(why));
  }
  auto folder = std::filesystem::path{real}.parent_path().string();
  if (auto why = distrust_folder(folder, "its folder", who); !why.empty()) {
    return refuse(std::move(why));
  }
  return read_all(file.number(), path, most);
}

expected<std::string> read_any_file(const std::string& path, std::size_t most) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.number() < 0) {
    return cannot_open(path, errno);
  }
  struct stat info {};
  if (::fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(errc::unavailable, "is no regular file; remove it or give it another name");
  }
  return read_all(file.number(), path, most);
}

expected<std::vector<std::string>> list_trusted_folder(const std::string& path, const trust& who) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 && errno == ENOENT) {
    return std::vector<std::string>{};
  }
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return cannot_open(path, errno);
  }
  std::unique_ptr<DIR, int (*)(DIR*)> folder{::fdopendir(fd), ::closedir};
  if (!folder) {
    ::close(fd);
    return fail(errc::unavailable, "can't be listed");
  }
  if (auto why = in_guest_folder(real_path(fd), who); !why.empty()) {
    return refuse(std::move(why));
  }
  if (auto why = distrust(fd, path, "it", who); !why.empty()) {
    return refuse(std::move(why));
  }
  std::vector<std::string> paths;
  errno = 0;
  while (const auto* entry = ::readdir(folder.get())) {
    if (is_configuration_name(entry->d_name)) {
      paths.push_back(fmt::format("{}/{}", path, entry->d_name));
    }
    errno = 0;
  }
  if (errno != 0) {
    return fail(errc::unavailable, fmt::format("can't be listed: {}", std::strerror(errno)));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

expected<std::string> read_descriptor(int fd, const std::string& what, std::size_t most) {
  std::string text;
  std::vector<char> buffer(64 * kibibyte);
  ssize_t count = 0;
  while ((count = ::read(fd, buffer.data(), buffer.size())) > 0 && text.size() <= most) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (count < 0) {
    return fail(errc::unavailable, fmt::format("read \"{}\": {}", what, std::strerror(errno)));
  }
  if (text.size() > most) {
    return fail(errc::too_large, fmt::format("read \"{}\": it has over {} bytes", what, most));
  }
  return text;
}

} // namespace bulkhead
