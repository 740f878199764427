#include "actors/credential_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "actors/artifact_files.hpp"
#include "actors/artifact_guard.hpp"
#include "actors/trusted_file.hpp"
#include "protocol/oauth_challenge.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t largest_file = 256 * 1024;

std::string file_of(const std::string& owner, const std::string& url) {
  return credential_name(owner, url) + ".json";
}

std::string challenge_file_of(const std::string& owner, const std::string& url) {
  return credential_name(owner, url) + ".challenge";
}

} // namespace

expected<std::optional<credential_folder::lock>>
credential_folder::try_lock(const std::string& owner, const std::string& url) const {
  auto folder = open_artifact_root(root_, true);
  if (!folder) {
    return tl::unexpected{folder.error()};
  }
  auto name = credential_name(owner, url) + ".lock";
  // It stays when it's released: whoever waits for it has it open.
  lock file{::openat(folder->get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return fail(errc::unavailable,
                fmt::format("the file \"{}/{}\": {}", root_, name, std::strerror(errno)));
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EINTR) {
      return std::nullopt;
    }
    return fail(errc::unavailable,
                fmt::format("lock \"{}/{}\": {}", root_, name, std::strerror(errno)));
  }
  return std::optional<lock>{std::move(file)};
}

expected<std::optional<std::string>> credential_folder::read_file(const std::string& name) const {
  auto folder = open_artifact_root(root_, false);
  if (!folder && folder.error().code == errc::not_found) {
    return std::nullopt;
  }
  if (!folder) {
    return tl::unexpected{folder.error()};
  }
  auto path = root_ + "/" + name;
  unique_descriptor file{
      ::openat(folder->get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!file && errno == ENOENT) {
    return std::nullopt;
  }
  if (!file) {
    return fail(errc::unavailable, fmt::format("read \"{}\": {}", path, std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & 0077) != 0) {
    return fail(errc::denied,
                fmt::format("\"{}\" could be read or changed by others than this account, so it "
                            "isn't used; remove it, and log in again",
                            path));
  }
  auto text = read_descriptor(file.get(), path, largest_file);
  if (!text) {
    return tl::unexpected{text.error()};
  }
  return std::optional<std::string>{std::move(*text)};
}

expected<void> credential_folder::write_file(const std::string& name, std::string_view text) const {
  auto folder = open_artifact_root(root_, true);
  if (!folder) {
    return tl::unexpected{folder.error()};
  }
  auto refused = [&](const std::string& why) {
    return fail(errc::unavailable, fmt::format("write \"{}/{}\": {}", root_, name, why));
  };
  auto fresh = fmt::format("{}.{}.new", name, ::getpid());
  ::unlinkat(folder->get(), fresh.c_str(), 0);
  auto file = make_file(folder->get(), fresh);
  if (!file) {
    return refused(file.error().message);
  }
  int cause = 0;
  write_at(file->get(), text, 0, cause);
  if (cause == 0 && ::fsync(file->get()) != 0) {
    cause = errno;
  }
  if (cause == 0 && ::renameat(folder->get(), fresh.c_str(), folder->get(), name.c_str()) != 0) {
    cause = errno;
  }
  if (cause != 0) {
    ::unlinkat(folder->get(), fresh.c_str(), 0);
    return refused(std::strerror(cause));
  }
  // The old refresh token may be worth nothing any more, so the new one must survive a crash.
  ::fsync(folder->get());
  return {};
}

expected<bool> credential_folder::remove_file(const std::string& name) const {
  auto folder = open_artifact_root(root_, false);
  if (!folder && folder.error().code == errc::not_found) {
    return false;
  }
  if (!folder) {
    return tl::unexpected{folder.error()};
  }
  if (::unlinkat(folder->get(), name.c_str(), 0) == 0) {
    return true;
  }
  if (errno == ENOENT) {
    return false;
  }
  return fail(errc::unavailable,
              fmt::format("remove \"{}/{}\": {}", root_, name, std::strerror(errno)));
}

expected<std::optional<oauth_credential>> credential_folder::read(const std::string& owner,
                                                                  const std::string& url) const {
  auto name = file_of(owner, url);
  auto text = read_file(name);
  if (!text) {
    return tl::unexpected{text.error()};
  }
  if (!*text) {
    return std::nullopt;
  }
  auto credential = decode_credential(**text, owner, url);
  if (!credential) {
    return fail(credential.error().code, fmt::format("\"{}/{}\": {}; remove it, and log in again",
                                                     root_, name, credential.error().message));
  }
  return std::optional<oauth_credential>{std::move(*credential)};
}

expected<void> credential_folder::write(const oauth_credential& credential) const {
  return write_file(file_of(credential.owner, credential.url), encode_credential(credential));
}

expected<bool> credential_folder::remove(const std::string& owner, const std::string& url) const {
  return remove_file(file_of(owner, url));
}

expected<void> credential_folder::write_challenge(const std::string& owner, const std::string& url,
                                                  const std::string& challenge) const {
  return write_file(challenge_file_of(owner, url), challenge.substr(0, longest_challenge));
}

void credential_folder::remove_challenge(const std::string& owner, const std::string& url) const {
  // One that stays only makes the next login ask for more than it must.
  static_cast<void>(remove_file(challenge_file_of(owner, url)));
}

std::string credential_folder::challenge(const std::string& owner, const std::string& url) const {
  auto text = read_file(challenge_file_of(owner, url));
  return text && *text ? **text : std::string{};
}

} // namespace bulkhead
