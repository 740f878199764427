#include "actors/io/file_watch.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/io/io_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;
namespace fs = std::filesystem;

/// A folder in which files are watched.
class file_watch : public ::testing::Test {
protected:
  void watch(std::vector<std::string> paths, io::watch_times times = {20ms, 1s, 20ms}) {
    auto is_json = [](std::string_view name) { return name.ends_with(".json"); };
    watch_ = io::file_watch::open(
        io_, is_json, [this] { told_.change([](int& count) { ++count; }); }, times);
    watch_->set(std::move(paths));
    // What is new is told first.
    ASSERT_TRUE(told(1));
    seen_ = told_.get();
  }
  void TearDown() override {
    if (watch_) {
      watch_->close();
      on_io(io_, [] { return 0; });
    }
  }

  bool told(int more) {
    return told_.wait([&](int count) { return count >= seen_ + more; });
  }

  template <class Change>
  void expect_told(Change change) {
    seen_ = told_.get();
    change();
    EXPECT_TRUE(told(1));
    settle();
  }

  /// Until nothing more of the last change can come.
  void settle() {
    auto count = told_.get();
    while (told_.wait([&](int now) { return now != count; }, 100ms)) {
      count = told_.get();
    }
    seen_ = count;
  }

  /// Nothing of the first is told before the second.
  template <class Change>
  void expect_untold(Change change) {
    settle();
    change();
    EXPECT_FALSE(told_.wait([&](int count) { return count > seen_; }, 150ms));
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream{folder_ / name} << text;
  }

  temporary_folder folder_;
  io::io_thread io_;
  monitored<int> told_;
  int seen_ = 0;
  std::shared_ptr<io::file_watch> watch_;
};

TEST_F(file_watch, a_folder) {
  write("old.json", "1");
  watch({folder_.path()});
  expect_told([&] { write("old.json", "2"); });
  expect_told([&] { write("new.json", "1"); });
  expect_told([&] { fs::rename(folder_ / "new.json", folder_ / "newer.json"); });
  expect_told([&] { fs::remove(folder_ / "newer.json"); });
  expect_told([&] { ::chmod((folder_ / "old.json").c_str(), 0600); });
  expect_untold([&] { write("unrelated.db", "1"); });
}

TEST_F(file_watch, a_file_among_others) {
  watch({folder_ / "one"});
  expect_told([&] { write("one", "1"); });
  expect_untold([&] { write("other.json", "1"); });
  // As editors save.
  expect_told([&] {
    write("one.tmp", "2");
    fs::rename(folder_ / "one.tmp", folder_ / "one");
  });
}

TEST_F(file_watch, what_a_link_leads_to) {
  fs::create_directory(folder_ / "elsewhere");
  write("elsewhere/real", "1");
  fs::create_symlink("elsewhere/real", folder_ / "link");
  watch({folder_ / "link"});
  expect_told([&] { write("elsewhere/real", "2"); });
}

TEST_F(file_watch, a_file_in_a_folder_to_come) {
  watch({folder_ / "later/one"});
  expect_told([&] { fs::create_directory(folder_ / "later"); });
  // Whoever is told sets what is to be watched from then on.
  watch_->set({folder_ / "later/one"});
  settle();
  expect_told([&] { write("later/one", "1"); });
}

TEST_F(file_watch, changes_that_come_together_are_told_once) {
  watch({folder_.path()}, {500ms, 10s, 20ms});
  for (int i = 0; i < 50; ++i) {
    write("a.json", std::to_string(i));
  }
  EXPECT_TRUE(told(1));
  EXPECT_FALSE(told_.wait([&](int count) { return count > seen_ + 1; }, 700ms));
}

TEST_F(file_watch, endless_changes_are_told_all_the_same) {
  watch({folder_.path()}, {10s, 200ms, 20ms});
  write("a.json", "1");
  EXPECT_TRUE(told(1));
}

TEST_F(file_watch, what_was_watched_before_is_not) {
  watch({folder_ / "one"});
  watch_->set({folder_ / "two"});
  settle();
  expect_untold([&] { write("one", "1"); });
  expect_told([&] { write("two", "1"); });
}

TEST_F(file_watch, without_the_kernel_it_looks_itself) {
  write("a.json", "1");
  // No more watches than none.
  rlimit none{};
  ::getrlimit(RLIMIT_NOFILE, &none);
  auto before = none;
  none.rlim_cur = 3;
  // Descriptors are scarce while it starts, so that inotify can't be had.
  std::promise<void> go;
  auto wait = go.get_future().share();
  boost::asio::post(io_.context(), [wait, none] {
    wait.wait();
    ::setrlimit(RLIMIT_NOFILE, &none);
  });
  watch_ = io::file_watch::open(
      io_, [](std::string_view) { return true; },
      [this] { told_.change([](int& count) { ++count; }); }, {20ms, 1s, 20ms});
  boost::asio::post(io_.context(), [before] { ::setrlimit(RLIMIT_NOFILE, &before); });
  go.set_value();
  watch_->set({folder_.path(), folder_ / "a.json"});
  ASSERT_TRUE(told(1));
  settle();
  expect_told([&] { write("a.json", "22"); });
  expect_told([&] { write("b.json", "1"); });
  expect_told([&] { fs::remove(folder_ / "b.json"); });
}

} // namespace
} // namespace bulkhead
