#include "actors/shared_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/acl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <acl/libacl.h>
#include <fmt/format.h>

#include "actors/io/spawn.hpp"

namespace bulkhead {

namespace {

constexpr int most_entries = 10'000;
constexpr int deepest = 32;

struct acl_deleter {
  void operator()(void* acl) const { ::acl_free(acl); }
};
using acl_ptr = std::unique_ptr<std::remove_pointer_t<acl_t>, acl_deleter>;

/// The entry for user `uid`, if the list has one.
std::optional<acl_entry_t> find_user(acl_t acl, uid_t uid) {
  acl_entry_t entry = nullptr;
  for (int next = ACL_FIRST_ENTRY; ::acl_get_entry(acl, next, &entry) == 1; next = ACL_NEXT_ENTRY) {
    acl_tag_t tag = ACL_UNDEFINED_TAG;
    if (::acl_get_tag_type(entry, &tag) == 0 && tag == ACL_USER) {
      std::unique_ptr<void, acl_deleter> who{::acl_get_qualifier(entry)};
      if (who && *static_cast<uid_t*>(who.get()) == uid) {
        return entry;
      }
    }
  }
  return std::nullopt;
}

using permissions = std::vector<acl_perm_t>;
const permissions use_file = {ACL_READ, ACL_WRITE};
const permissions use_folder = {ACL_READ, ACL_WRITE, ACL_EXECUTE};
const permissions pass = {ACL_EXECUTE};

bool allow(acl_entry_t entry, const permissions& wanted) {
  acl_permset_t set = nullptr;
  return ::acl_get_permset(entry, &set) == 0 &&
         std::all_of(wanted.begin(), wanted.end(),
                     [&](acl_perm_t each) { return ::acl_add_perm(set, each) == 0; }) &&
         ::acl_set_permset(entry, set) == 0;
}

/// Adds permissions for a user; keeps all other entries.
bool add_user(acl_ptr& acl, uid_t uid, const permissions& wanted) {
  if (auto entry = find_user(acl.get(), uid)) {
    return allow(*entry, wanted);
  }
  acl_t list = acl.release();
  acl_entry_t entry = nullptr;
  // May move the list.
  bool good = ::acl_create_entry(&list, &entry) == 0;
  acl.reset(list);
  return good && ::acl_set_tag_type(entry, ACL_USER) == 0 &&
         ::acl_set_qualifier(entry, &uid) == 0 && allow(entry, wanted);
}

/// The path by which the kernel reaches an open file again; default ACLs can't be set by
/// descriptor.
std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

/// Sets the mask to what the entries need. The call may move the list.
bool complete(acl_ptr& acl) {
  acl_t list = acl.release();
  bool good = ::acl_calc_mask(&list) == 0;
  acl.reset(list);
  return good;
}

bool share_access(int fd, uid_t guest, const permissions& wanted) {
  acl_ptr acl{::acl_get_fd(fd)};
  return acl && add_user(acl, guest, wanted) && complete(acl) && ::acl_set_fd(fd, acl.get()) == 0;
}

/// What is made in the folder later belongs to whoever made it, and both sides reach it.
bool share_future(int fd, uid_t owner, uid_t guest) {
  auto path = path_of(fd);
  acl_ptr acl{::acl_get_file(path.c_str(), ACL_TYPE_DEFAULT)};
  if (acl && ::acl_entries(acl.get()) == 0) {
    // A default ACL needs the three base entries.
    acl.reset(::acl_from_text("u::rwx,g::---,o::---"));
  }
  return acl && add_user(acl, owner, use_folder) && add_user(acl, guest, use_folder) &&
         complete(acl) && ::acl_set_file(path.c_str(), ACL_TYPE_DEFAULT, acl.get()) == 0;
}

bool is_shared(int fd, uid_t guest) {
  acl_ptr acl{::acl_get_fd(fd)};
  acl_ptr future{::acl_get_file(path_of(fd).c_str(), ACL_TYPE_DEFAULT)};
  // The group's bits show the mask; chmod on the folder may have emptied it.
  struct stat info {};
  bool effective = ::fstat(fd, &info) == 0 && (info.st_mode & S_IRWXG) == S_IRWXG;
  return effective && acl && find_user(acl.get(), guest) && future &&
         find_user(future.get(), guest);
}

/// Shares what the owner already has in a folder. Best effort: the guest may be changing it
/// meanwhile.
class content_sharer {
public:
  content_sharer(uid_t owner, uid_t guest) : owner_{owner}, guest_{guest} {}

  void share(int folder, int depth) {
    // fdopendir takes the descriptor over, so it gets one of its own.
    int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::unique_ptr<DIR, int (*)(DIR*)> dir{own < 0 ? nullptr : ::fdopendir(own), ::closedir};
    while (dir && left_ > 0) {
      const auto* entry = ::readdir(dir.get());
      if (entry == nullptr) {
        break;
      }
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") {
        --left_;
        share_entry(folder, entry->d_name, depth);
      }
    }
  }

private:
  void share_entry(int folder, const char* name, int depth) {
    io::descriptor file{
        ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    struct stat info {};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || info.st_uid != owner_) {
      return;
    }
    if (S_ISDIR(info.st_mode) && depth < deepest) {
      if (share_access(file.get(), guest_, use_folder) &&
          share_future(file.get(), owner_, guest_)) {
        share(file.get(), depth + 1);
      }
    } else if (S_ISREG(info.st_mode) && info.st_nlink == 1) {
      share_access(file.get(), guest_, use_file);
    }
  }

  uid_t owner_;
  uid_t guest_;
  int left_ = most_entries;
};

} // namespace

expected<sharing> share_folder(const std::string& folder, std::uint32_t owner,
                               std::uint32_t guest) {
  io::descriptor top{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (top.get() < 0) {
    return fail(errc::unavailable, fmt::format("open \"{}\": {}", folder, std::strerror(errno)));
  }
  if (is_shared(top.get(), guest)) {
    return sharing::done;
  }
  if (!share_access(top.get(), guest, use_folder) || !share_future(top.get(), owner, guest)) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
      return sharing::unsupported;
    }
    return fail(errc::unavailable,
                fmt::format("share \"{}\" with uid {} by ACL: {}; make the folder yours", folder,
                            guest, std::strerror(errno)));
  }
  content_sharer{owner, guest}.share(top.get(), 0);
  return sharing::done;
}

expected<void> let_through(const std::string& path, std::uint32_t owner, std::uint32_t guest) {
  auto folder = std::filesystem::path{path}.parent_path();
  for (; folder != folder.root_path(); folder = folder.parent_path()) {
    io::descriptor open{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct stat info {};
    // Where the owner may only pass, others may as well or it isn't the owner's to change.
    if (open.get() < 0 || ::fstat(open.get(), &info) != 0 || info.st_uid != owner ||
        (info.st_mode & S_IXOTH) != 0) {
      continue;
    }
    if (!share_access(open.get(), guest, pass)) {
      return fail(errc::unavailable, fmt::format("let uid {} enter \"{}\" by ACL: {}", guest,
                                                 folder.string(), std::strerror(errno)));
    }
  }
  return {};
}

} // namespace bulkhead
