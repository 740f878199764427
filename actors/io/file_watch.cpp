#include "actors/io/file_watch.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace bulkhead::io {

namespace {

constexpr std::uint32_t interesting = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                      IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                      IN_ONLYDIR;

/// The folder that tells of a path: its own, or the nearest one above that exists, and the name in
/// it that leads to the path.
std::pair<std::string, std::string> nearest_folder(const std::string& path) {
  std::filesystem::path at{path};
  std::error_code ignored;
  while (at.has_relative_path()) {
    auto parent = at.parent_path();
    if (std::filesystem::is_directory(parent, ignored)) {
      return {parent.string(), at.filename().string()};
    }
    at = parent;
  }
  return {"/", at.filename().string()};
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

} // namespace

std::shared_ptr<file_watch> file_watch::open(io_thread& io, name_filter in_folders,
                                             std::function<void()> changed, watch_times times) {
  auto watch = std::make_shared<file_watch>(io, std::move(in_folders), std::move(changed), times);
  boost::asio::post(io.context(), [watch] { watch->start(); });
  return watch;
}

file_watch::file_watch(io_thread& io, name_filter in_folders, std::function<void()> changed,
                       watch_times times)
    : io_{io}, in_folders_{std::move(in_folders)}, changed_{std::move(changed)}, times_{times},
      events_{io.context()}, quiet_{io.context()}, next_look_{io.context()} {}

file_watch::~file_watch() = default;

void file_watch::start() {
  int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd >= 0) {
    events_.assign(fd);
    read_events();
  }
}

void file_watch::set(std::vector<std::string> paths) {
  boost::asio::post(io_.context(), [me = shared_from_this(), paths = std::move(paths)]() mutable {
    me->apply(std::move(paths));
  });
}

void file_watch::close() {
  boost::asio::post(io_.context(), [me = shared_from_this()] {
    me->closed_ = true;
    me->quiet_.cancel();
    me->next_look_.cancel();
    boost::system::error_code ignored;
    me->events_.close(ignored);
  });
}

file_watch::stamp file_watch::stamp_of(const std::string& path) const {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return {};
  }
  if (S_ISDIR(info.st_mode)) {
    // Much comes and goes in it that doesn't matter.
    std::int64_t names = 0;
    std::error_code failure;
    for (std::filesystem::directory_iterator at{path, failure}, end; !failure && at != end;
         at.increment(failure)) {
      auto name = at->path().filename().string();
      names +=
          in_folders_(name) ? static_cast<std::int64_t>(std::hash<std::string>{}(name) >> 8) : 0;
    }
    return {info.st_dev, info.st_ino, 0, info.st_mode, info.st_uid, names, 0};
  }
  return {info.st_dev,
          info.st_ino,
          info.st_size,
          info.st_mode,
          info.st_uid,
          nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim)};
}

/// False when the kernel won't tell of this folder.
bool file_watch::watch_folder(const std::string& folder) {
  if (watches_.contains(folder)) {
    return true;
  }
  int watch = events_.is_open()
                  ? ::inotify_add_watch(events_.native_handle(), folder.c_str(), interesting)
                  : -1;
  if (watch >= 0) {
    watches_[folder] = watch;
  }
  return watch >= 0;
}

void file_watch::apply(std::vector<std::string> paths) {
  if (closed_) {
    return;
  }
  auto before = std::exchange(watches_, {});
  auto known = std::exchange(stamps_, {});
  relevant_.clear();
  whole_.clear();
  looks_ = false;
  std::set<std::string> all{paths.begin(), paths.end()};
  for (const auto& path : paths) {
    std::error_code ignored;
    // What a link leads to lies elsewhere.
    if (auto real = std::filesystem::canonical(path, ignored); !real.empty()) {
      all.insert(real.string());
    }
  }
  for (const auto& path : all) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      looks_ = !watch_folder(path) || looks_;
      if (auto found = watches_.find(path); found != watches_.end()) {
        whole_.insert(found->second);
      }
    }
  }
  for (const auto& path : all) {
    auto [folder, name] = nearest_folder(path);
    looks_ = !watch_folder(folder) || looks_;
    auto found = watches_.find(folder);
    if (found != watches_.end()) {
      relevant_[found->second].insert(name);
    }
  }
  for (const auto& [folder, watch] : before) {
    bool kept = std::any_of(watches_.begin(), watches_.end(),
                            [&](const auto& each) { return each.second == watch; });
    if (!kept && events_.is_open()) {
      ::inotify_rm_watch(events_.native_handle(), watch);
    }
  }
  bool differs = false;
  for (const auto& path : all) {
    stamps_[path] = stamp_of(path);
    auto earlier = known.find(path);
    differs = differs || earlier == known.end() || earlier->second != stamps_[path];
  }
  if (differs) {
    note_change();
  }
  look_later();
}

void file_watch::read_events() {
  events_.async_read_some(
      boost::asio::buffer(buffer_),
      [me = shared_from_this()](const boost::system::error_code& failure, std::size_t bytes) {
        if (failure || me->closed_) {
          return;
        }
        me->took(bytes);
        me->read_events();
      });
}

void file_watch::took(std::size_t bytes) {
  std::size_t at = 0;
  bool change = false;
  while (at + sizeof(inotify_event) <= bytes) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + at, sizeof event);
    const char* name = buffer_.data() + at + sizeof event;
    std::string_view text{name, event.len > 0 ? ::strnlen(name, event.len) : 0};
    at += sizeof event + event.len;
    bool itself = (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW)) != 0;
    change = change || itself || ((event.mask & IN_IGNORED) == 0 && concerns(event.wd, text));
  }
  if (change) {
    note_change();
  }
}

bool file_watch::concerns(int watch, std::string_view name) const {
  if (whole_.contains(watch) && (name.empty() || in_folders_(name))) {
    return true;
  }
  auto found = relevant_.find(watch);
  return found != relevant_.end() && found->second.contains(std::string{name});
}

void file_watch::note_change() {
  auto now = std::chrono::steady_clock::now();
  if (!std::exchange(waiting_, true)) {
    first_change_ = now;
  }
  quiet_.expires_at(std::min(now + times_.quiet, first_change_ + times_.longest));
  quiet_.async_wait([me = shared_from_this()](const boost::system::error_code& failure) {
    if (!failure && !me->closed_) {
      me->tell();
    }
  });
}

void file_watch::tell() {
  waiting_ = false;
  for (auto& [path, known] : stamps_) {
    known = stamp_of(path);
  }
  changed_();
}

void file_watch::look_later() {
  if (!looks_) {
    next_look_.cancel();
    return;
  }
  next_look_.expires_after(times_.between_looks);
  next_look_.async_wait([me = shared_from_this()](const boost::system::error_code& failure) {
    if (!failure && !me->closed_) {
      me->look();
    }
  });
}

void file_watch::look() {
  bool differs = std::any_of(stamps_.begin(), stamps_.end(), [this](const auto& each) {
    return stamp_of(each.first) != each.second;
  });
  if (differs && !waiting_) {
    note_change();
  }
  look_later();
}

} // namespace bulkhead::io
