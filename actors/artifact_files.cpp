#include "actors/artifact_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view about_ending = ".json";
/// Above any description: name and owner are at most 255 bytes each, six times that escaped.
constexpr std::size_t longest_about = 8192;
/// Bytes of a cause, so that a stream's description stays within its size.
constexpr std::size_t longest_cause = 160;

std::optional<std::string> read_small_file(int folder, const std::string& name) {
  unique_descriptor file{::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  std::string text(longest_about, '\0');
  const auto size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (size < 0) {
    return std::nullopt;
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string text_member(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

} // namespace

std::string encode_about(const about_file& about) {
  return fmt::format(R"({{"owner":{},"name":{},"mimeType":{},"total":{},"why":{}}})",
                     json_quote(about.owner), json_quote(about.name), json_quote(about.mime_type),
                     about.total, json_quote(std::string_view{about.why}.substr(0, longest_cause)));
}

std::optional<about_file> read_about(int folder, const std::string& file) {
  const auto text = read_small_file(folder, file + std::string{about_ending});
  const auto object = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json{};
  if (!object.is_object()) {
    return std::nullopt;
  }
  about_file about{text_member(object, "owner"), text_member(object, "name"),
                   text_member(object, "mimeType"), 0, text_member(object, "why")};
  if (const auto total = object.find("total");
      total != object.end() && total->is_number_unsigned()) {
    about.total = total->get<std::uint64_t>();
  }
  return about.owner.empty() ? std::nullopt : std::optional{std::move(about)};
}

bool is_about(std::string_view name) {
  return name.ends_with(about_ending);
}

expected<unique_descriptor> make_file(int folder, const std::string& name) {
  unique_descriptor file{
      ::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return fail(errc::unavailable, std::strerror(errno));
  }
  return file;
}

std::size_t write_at(int fd, std::string_view bytes, std::uint64_t offset, int& cause) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto written =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      cause = written < 0 ? errno : ENOSPC;
      break;
    }
    done += static_cast<std::size_t>(written);
  }
  return done;
}

unique_descriptor open_folder(int above, const std::string& name) {
  return unique_descriptor{
      ::openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
}

void for_each_entry(int folder, const std::function<void(const std::string& name)>& each) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir{fd < 0 ? nullptr : ::fdopendir(fd), ::closedir};
  while (dir) {
    const auto* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      break;
    }
    if (std::string name{entry->d_name}; name != "." && name != "..") {
      each(name);
    }
  }
}

std::uint64_t size_of(int folder, const std::string& name) {
  struct stat info {};
  return ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0
             ? static_cast<std::uint64_t>(info.st_size)
             : 0;
}

} // namespace bulkhead
