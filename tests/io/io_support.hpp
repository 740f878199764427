#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "actors/io/child_process.hpp"
#include "actors/io/io_thread.hpp"

/// What the tests with real processes and pipes share. Every wait ends after `patience` at the
/// latest: long, since the machine may be busy, and never used up by a test that passes.

namespace bulkhead::testing {

using namespace std::chrono_literals;

inline constexpr auto patience = 20s;

/// A value that threads change and a test waits for.
template <class T>
class monitored {
public:
  template <class Change>
  void change(Change change) {
    std::lock_guard guard{mutex_};
    change(value_);
    changed_.notify_all();
  }

  T get() const {
    std::lock_guard guard{mutex_};
    return value_;
  }

  /// Waits until `done(value)`; false when that takes too long.
  template <class Predicate>
  bool wait(Predicate done, std::chrono::milliseconds limit = patience) {
    std::unique_lock guard{mutex_};
    return changed_.wait_for(guard, limit, [&] { return done(value_); });
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  T value_{};
};

/// Waits until `done()`, which only asks the kernel; false when that takes too long.
template <class Predicate>
bool eventually(Predicate done, std::chrono::milliseconds limit = patience) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// Is there such a process, zombies not counted?
inline bool alive(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  std::getline(file, text); // doesn't throw when the process ends meanwhile
  auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] != 'Z';
}

inline std::vector<std::string> own_path() {
  const char* path = std::getenv("PATH");
  return {std::string{"PATH="} + (path != nullptr ? path : "/usr/bin:/bin")};
}

inline process_spec shell(const std::string& script) {
  process_spec spec;
  spec.argv = {"sh", "-c", script};
  spec.env = own_path();
  return spec;
}

/// A folder that goes with its holder.
class temporary_folder {
public:
  temporary_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-io-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error{"no temporary folder"};
    }
    path_ = pattern;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Runs `work` on the I/O thread and waits for what it returns.
template <class Function>
auto on_io(io::io_thread& io, Function work) {
  std::packaged_task<decltype(work())()> task{std::move(work)};
  auto result = task.get_future();
  boost::asio::post(io.context(), [&task] { task(); });
  return result.get();
}

} // namespace bulkhead::testing
