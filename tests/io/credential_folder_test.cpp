#include "actors/credential_folder.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;

const std::string url = "https://a.example/mcp";

struct credential_folder_test : ::testing::Test {
  credential_folder_test() {
    std::string pattern = fs::temp_directory_path() / "credentials-XXXXXX";
    state = ::mkdtemp(pattern.data());
    folder.emplace(state / "credentials");
  }
  ~credential_folder_test() override { fs::remove_all(state); }

  static oauth_credential sample() {
    oauth_credential result;
    result.url = url;
    result.client.id = "client";
    result.token_endpoint = "https://as.example/token";
    result.access_token = "AT";
    return result;
  }

  fs::path file() const { return state / "credentials" / (credential_name("", url) + ".json"); }

  static mode_t mode(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  fs::path state;
  std::optional<credential_folder> folder;
};

TEST_F(credential_folder_test, keeps_and_forgets) {
  EXPECT_EQ(folder->read("", url), std::nullopt);
  EXPECT_EQ(folder->remove("", url), false);
  ASSERT_TRUE(folder->write(sample()));
  EXPECT_EQ(folder->read("", url), sample());
  EXPECT_EQ(folder->read("other", url), std::nullopt);
  auto second = sample();
  second.access_token = "AT2";
  ASSERT_TRUE(folder->write(second));
  EXPECT_EQ((*folder->read("", url))->access_token, "AT2");
  EXPECT_EQ(folder->remove("", url), true);
  EXPECT_EQ(folder->read("", url), std::nullopt);
}

TEST_F(credential_folder_test, is_for_the_account_alone) {
  auto before = ::umask(0);
  ASSERT_TRUE(folder->write(sample()));
  ASSERT_TRUE(folder->write_challenge("", url, "Bearer"));
  ASSERT_TRUE(folder->try_lock("", url));
  ::umask(before);
  EXPECT_EQ(mode(state / "credentials"), 0700u);
  for (const auto& each : fs::directory_iterator{state / "credentials"}) {
    EXPECT_EQ(mode(each.path()), 0600u) << each.path();
  }
}

TEST_F(credential_folder_test, leaves_nothing_half_written) {
  ASSERT_TRUE(folder->write(sample()));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : fs::directory_iterator{state / "credentials"}) {
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(credential_folder_test, takes_nothing_that_others_could_have_read_or_made) {
  ASSERT_TRUE(folder->write(sample()));
  ::chmod(file().c_str(), 0640);
  EXPECT_EQ(folder->read("", url).error().code, errc::denied);
  ::chmod(file().c_str(), 0600);
  EXPECT_TRUE(folder->read("", url));
  fs::rename(file(), state / "elsewhere");
  fs::create_symlink(state / "elsewhere", file());
  EXPECT_EQ(folder->read("", url).error().code, errc::unavailable);
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(folder->read("", url).error().code, errc::denied);
}

TEST_F(credential_folder_test, says_which_file_is_damaged) {
  ASSERT_TRUE(folder->write(sample()));
  std::ofstream{file()} << "{";
  auto failure = folder->read("", url).error();
  EXPECT_EQ(failure.code, errc::malformed);
  EXPECT_NE(failure.message.find(file().string()), std::string::npos);
}

TEST_F(credential_folder_test, is_locked_for_one_at_a_time) {
  auto first = folder->try_lock("", url);
  ASSERT_TRUE(first && *first);
  auto second = folder->try_lock("", url);
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
  EXPECT_TRUE(*folder->try_lock("other", url));
  first->reset();
  EXPECT_TRUE(*folder->try_lock("", url));
}

TEST_F(credential_folder_test, a_lock_ends_with_its_process) {
  ASSERT_TRUE(folder->try_lock("", url));
  auto child = ::fork();
  if (child == 0) {
    auto held = folder->try_lock("", url);
    ::_exit(held && *held ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(*folder->try_lock("", url));
}

} // namespace
} // namespace bulkhead
