// Reading what runs left. It takes no lock: a file that goes meanwhile is as if it were gone
// before.

#include "actors/artifact_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "actors/artifact_files.hpp"

namespace bulkhead {

namespace {

/// Entries of a page; one run's are never split, so that there may be somewhat more.
constexpr std::size_t page_size = 50;

tl::unexpected<error> not_found() {
  return fail(errc::not_found, "there is no such resource");
}

std::string cursor_of(const run_folder& which) {
  return fmt::format("{}-{}", which.changed, which.handle);
}

std::optional<run_folder> parse_cursor(std::string_view cursor) {
  run_folder place;
  const auto dash = cursor.find('-');
  const auto number = cursor.substr(0, dash);
  auto [end, failure] =
      std::from_chars(number.data(), number.data() + number.size(), place.changed);
  if (dash == std::string_view::npos || failure != std::errc{} ||
      end != number.data() + number.size() || !is_handle(cursor.substr(dash + 1))) {
    return std::nullopt;
  }
  place.handle = cursor.substr(dash + 1);
  return place;
}

/// The file of an artifact; empty when there is none of that name.
std::string file_named(int folder, const std::string& name) {
  std::string found;
  for_each_entry(folder, [&](const std::string& file) {
    if (!is_about(file)) {
      auto about = read_about(folder, file);
      found = about && about->name == name ? file : found;
    }
  });
  return found;
}

struct stored_entry {
  std::string file;
  resource_entry shown;
};

/// What an owner's run left, the streams first, artifacts as they came.
std::vector<stored_entry> entries_of(int folder, const std::string& handle,
                                     const std::string& owner) {
  std::vector<stored_entry> all;
  for_each_entry(folder, [&](const std::string& file) {
    auto about = is_about(file) ? std::nullopt : read_about(folder, file);
    if (!about || about->owner != owner) {
      return;
    }
    const bool stream = about->name.empty();
    auto uri = stream ? output_uri(handle, file == "stdout" ? stream_id::out : stream_id::err)
                      : artifact_uri(handle, about->name);
    all.push_back(
        {file,
         {std::move(uri), stream ? file : about->name, about->mime_type, size_of(folder, file)}});
  });
  auto place = [](const stored_entry& each) {
    const bool number = each.file.front() >= '0' && each.file.front() <= '9';
    return std::tuple{number, number ? each.file.size() : 0, std::string_view{each.file}};
  };
  std::sort(all.begin(), all.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return all;
}

/// Reads up to `size` bytes at `offset`; what there is of them.
std::string read_at(int fd, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const auto got =
        ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got <= 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

} // namespace

expected<resource_part> artifact_folder::read(const resource_range& range, std::size_t most) const {
  const auto& what = range.what;
  auto root = open_artifact_root(rules_.root, false);
  auto folder =
      root && is_handle(what.handle) ? open_folder(root->get(), what.handle) : unique_descriptor{};
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0 ||
      too_old(info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec)) {
    return not_found();
  }
  const auto file =
      what.stream ? std::string{to_string(*what.stream)} : file_named(folder.get(), what.artifact);
  auto about = file.empty() ? std::nullopt : read_about(folder.get(), file);
  unique_descriptor data{
      about && about->owner == range.owner
          ? ::openat(folder.get(), file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
          : -1};
  if (!data || ::fstat(data.get(), &info) != 0) {
    return not_found();
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const auto left = size - std::min(what.offset, size);
  const auto wanted = std::min({left, what.length.value_or(left), std::uint64_t{most}});
  resource_part part;
  part.bytes = read_at(data.get(), what.offset, static_cast<std::size_t>(wanted));
  part.kept = size;
  part.total = what.stream ? std::max(about->total, size) : size;
  part.mime_type = std::move(about->mime_type);
  part.why = std::move(about->why);
  return part;
}

expected<resource_page> artifact_folder::list(const std::string& owner,
                                              std::string_view cursor) const {
  const auto place = parse_cursor(cursor);
  if (!place && !cursor.empty()) {
    return fail(errc::invalid_argument, "Invalid cursor");
  }
  resource_page page;
  auto root = open_artifact_root(rules_.root, false);
  if (!root) {
    return page;
  }
  auto all = run_folders(root->get());
  std::reverse(all.begin(), all.end());
  run_folder last;
  for (const auto& each : all) {
    const bool before =
        place && std::tie(each.changed, each.handle) >= std::tie(place->changed, place->handle);
    auto folder = before || too_old(each.changed) ? unique_descriptor{}
                                                  : open_folder(root->get(), each.handle);
    if (!folder) {
      continue;
    }
    auto entries = entries_of(folder.get(), each.handle, owner);
    if (!page.entries.empty() && page.entries.size() + entries.size() > page_size) {
      page.next = cursor_of(last);
      break;
    }
    for (auto& entry : entries) {
      page.entries.push_back(std::move(entry.shown));
    }
    last = each;
  }
  return page;
}

} // namespace bulkhead
