#include "actors/host_view.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "protocol/limits.hpp"

namespace bulkhead {

host_view host_view::real() {
  host_view result;
  result.uid = ::geteuid();
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(result.uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found) {
    result.account = found->pw_name;
  }
  result.cgroups = real_cgroup_files();
  return result;
}

std::string cgroup_version(const host_view& host) {
  return std::filesystem::exists(host.cgroup_root + "/cgroup.controllers") ? "v2" : "v1";
}

bool cgroups_are_hybrid(const host_view& host) {
  return std::filesystem::exists(host.cgroup_root + "/unified");
}

std::string boot_id(const host_view& host) {
  auto text = read_small_file(host.proc + "/sys/kernel/random/boot_id").value_or("");
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text;
}

namespace {

struct process_stat {
  char state = '?';
  std::uint64_t start_time = 0;
};

std::optional<process_stat> read_stat(const host_view& host, std::int32_t pid) {
  auto text = read_small_file(fmt::format("{}/{}/stat", host.proc, pid));
  // The name in parentheses may hold anything, so fields count from the last one.
  auto end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields{text->substr(end + 1)};
  process_stat result;
  fields >> result.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) {
    fields >> skipped;
  }
  if (!(fields >> result.start_time)) {
    return std::nullopt;
  }
  return result;
}

} // namespace

std::optional<std::uint64_t> process_start_time(const host_view& host, std::int32_t pid) {
  auto stat = read_stat(host, pid);
  return stat ? std::optional{stat->start_time} : std::nullopt;
}

bool process_alive(const host_view& host, std::int32_t pid, std::uint64_t start_time) {
  auto stat = read_stat(host, pid);
  return stat && stat->start_time == start_time && stat->state != 'Z' && stat->state != 'X';
}

std::optional<std::uint32_t> map_uid(std::string_view uid_map, std::uint32_t inner) {
  std::istringstream lines{std::string{uid_map}};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    if (inner >= inside && inner - inside < count) {
      return static_cast<std::uint32_t>(outside + (inner - inside));
    }
  }
  return std::nullopt;
}

std::optional<sub_uids> find_sub_uids(const host_view& host) {
  std::istringstream lines{read_small_file(host.subuid_file).value_or("")};
  auto number = std::to_string(host.uid);
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), ':', ' ');
    std::istringstream fields{line};
    std::string who;
    sub_uids range;
    if (fields >> who >> range.first >> range.count && (who == host.account || who == number)) {
      return range;
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_small_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return std::nullopt;
  }
  std::string result;
  std::array<char, 16 * kibibyte> buffer;
  ssize_t got = 0;
  while (result.size() < mebibyte && (got = ::read(fd, buffer.data(), buffer.size())) > 0) {
    result.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return got < 0 ? std::nullopt : std::optional{std::move(result)};
}

expected<void> write_small_file(const std::string& path, std::string_view text, unsigned mode) {
  auto beside = fmt::format("{}.{}.new", path, ::getpid());
  ::unlink(beside.c_str());
  int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool good = fd >= 0;
  while (good && !text.empty()) {
    auto put = ::write(fd, text.data(), text.size());
    good = put >= 0 || errno == EINTR;
    text.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  good = good && ::fchmod(fd, mode) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  auto cause = errno;
  if (fd >= 0) {
    ::close(fd);
  }
  if (!good) {
    ::unlink(beside.c_str());
    return fail(errc::unavailable, fmt::format("write \"{}\": {}", path, std::strerror(cause)));
  }
  return {};
}

} // namespace bulkhead
