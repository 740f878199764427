#include "actors/approval_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;

struct approval_store_test : ::testing::Test {
  approval_store_test() {
    std::string pattern = fs::temp_directory_path() / "bulkhead-approvals-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder / "state" / "tool-approvals";
  }
  ~approval_store_test() override { fs::remove_all(folder); }

  expected<void> add(const std::string& tool) {
    return change_approvals(path, [&](auto& approvals) {
      add_approval(approvals, {{"s", tool, "d"}, 1});
    });
  }

  fs::path folder;
  std::string path;
};

TEST_F(approval_store_test, starts_with_none_and_keeps_what_it_gets) {
  EXPECT_TRUE(read_approvals(path)->empty());
  ASSERT_TRUE(add("a"));
  ASSERT_TRUE(add("b"));
  EXPECT_EQ(read_approvals(path)->size(), 2U);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(fs::exists(path + ".new"));
}

TEST_F(approval_store_test, lies_beside_what_guests_write_and_is_no_configuration) {
  settings config;
  config.state_dir = "/home/ann/MCPs";
  auto where = approvals_path(config);
  EXPECT_EQ(fs::path{where}.parent_path(), "/home/ann/MCPs");
  EXPECT_NE(fs::path{where}.extension(), ".json");
}

TEST_F(approval_store_test, a_file_that_others_could_have_written_approves_nothing) {
  ASSERT_TRUE(add("a"));
  ::chmod(path.c_str(), 0666);
  auto read = read_approvals(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::denied);
  EXPECT_NE(read.error().message.find(path), std::string::npos);
  EXPECT_FALSE(add("b")) << "which would make it trusted again";
  fs::remove(path);
  fs::create_directories(folder / "state" / "user_tools");
  std::ofstream{folder / "state" / "user_tools" / "x"} << encode_approvals({{{"s", "t", "d"}, 1}});
  fs::create_symlink(folder / "state" / "user_tools" / "x", path);
  EXPECT_FALSE(read_approvals(path)) << "it leads to where guests write";
}

TEST_F(approval_store_test, a_damaged_file_is_told_and_left) {
  fs::create_directories(folder / "state");
  std::ofstream{path} << "{";
  ::chmod(path.c_str(), 0600);
  auto read = read_approvals(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::malformed);
  EXPECT_FALSE(add("a"));
  EXPECT_EQ(fs::file_size(path), 1U);
}

TEST_F(approval_store_test, changes_at_once_are_all_kept) {
  constexpr int changes = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < changes; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(add(fmt::format("t{}", i))); });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_EQ(read_approvals(path)->size(), std::size_t{changes});
}

} // namespace
} // namespace bulkhead
