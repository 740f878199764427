#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "actors/io/io_thread.hpp"

namespace bulkhead::io {

/// How a watch waits.
struct watch_times {
  std::chrono::milliseconds quiet{250};     ///< without a further change before it is told
  std::chrono::milliseconds longest{2'000}; ///< after the first change it is told all the same
  std::chrono::milliseconds between_looks{5'000}; ///< where the kernel doesn't tell of changes
};

/// Tells when files or folders change, appear or vanish, by inotify, once for changes that come
/// together. What the kernel won't watch (no watches left, a folder that can't be listed) is looked
/// at from time to time. Lives on the I/O thread: see `open`.
class file_watch : public std::enable_shared_from_this<file_watch> {
public:
  /// Which files of a folder matter, by name.
  using name_filter = std::function<bool(std::string_view name)>;

  /// `changed` is called on the I/O thread.
  static std::shared_ptr<file_watch> open(io_thread& io, name_filter in_folders,
                                          std::function<void()> changed, watch_times times = {});

  file_watch(io_thread& io, name_filter in_folders, std::function<void()> changed,
             watch_times times);
  ~file_watch();
  file_watch(const file_watch&) = delete;
  file_watch& operator=(const file_watch&) = delete;

  /// From now on these are watched and no others; of a folder, what is directly in it. Since they
  /// may have changed before anybody watched them, those that are new here are told as a change,
  /// and so is what differs from when it was told or set last. From any thread.
  void set(std::vector<std::string> paths);

  /// Ends it; `changed` isn't called any more once this has run. From any thread.
  void close();

private:
  /// What tells one state of a file from another.
  struct stamp {
    dev_t device = 0;
    ino_t file = 0;
    off_t size = 0;
    mode_t mode = 0;
    uid_t owner = 0;
    std::int64_t modified = 0; ///< nanoseconds
    std::int64_t changed = 0;
    friend bool operator==(const stamp&, const stamp&) = default;
  };

  void start();
  void apply(std::vector<std::string> paths);
  bool watch_folder(const std::string& folder);
  void read_events();
  void took(std::size_t bytes);
  bool concerns(int watch, std::string_view name) const;
  void note_change();
  void tell();
  void look_later();
  void look();
  stamp stamp_of(const std::string& path) const;

  io_thread& io_;
  const name_filter in_folders_;
  const std::function<void()> changed_;
  const watch_times times_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer quiet_;
  boost::asio::steady_timer next_look_;
  std::chrono::steady_clock::time_point first_change_{};
  bool waiting_ = false; ///< a change is to be told
  bool closed_ = false;
  std::map<std::string, stamp> stamps_;           ///< of what is watched
  std::map<std::string, int> watches_;            ///< by folder
  std::map<int, std::set<std::string>> relevant_; ///< names in a folder
  std::set<int> whole_;                           ///< folders of which all that matters counts
  bool looks_ = false;                            ///< something isn't watched by the kernel
  alignas(8) std::array<char, 16 * 1024> buffer_{};
};

} // namespace bulkhead::io
