#include "actors/trusted_file.hpp"

#include <sys/acl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;

/// A state folder with one good file and the guests' folder in it.
class trusted_file : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "bulkhead-trust-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = fs::canonical(pattern);
    guests = root / "user_tools";
    fs::create_directories(guests);
    good = write(root / "good.json");
    who = {::geteuid(), {guests}};
  }
  void TearDown() override { fs::remove_all(root); }

  static fs::path write(const fs::path& path) {
    std::ofstream{path} << "{}";
    ::chmod(path.c_str(), 0644);
    return path;
  }

  void expect_refused(const fs::path& path, std::string_view part) const {
    auto text = read_trusted_file(path, 100, who);
    ASSERT_FALSE(text) << path;
    EXPECT_NE(text.error().message.find(part), std::string::npos) << text.error().message;
  }
  void expect_folder_refused(std::string_view part) const {
    auto listed = list_trusted_folder(root, who);
    ASSERT_FALSE(listed);
    EXPECT_NE(listed.error().message.find(part), std::string::npos) << listed.error().message;
  }

  fs::path root;
  fs::path guests;
  fs::path good;
  trust who;
};

TEST_F(trusted_file, good_ones_are_taken) {
  EXPECT_EQ(read_trusted_file(good, 2, who).value(), "{}");
  fs::create_symlink("good.json", root / "link.json");
  EXPECT_TRUE(read_trusted_file(root / "link.json", 2, who));
  ::chmod(good.c_str(), 0400);
  EXPECT_TRUE(read_trusted_file(good, 2, who));
  EXPECT_TRUE(read_trusted_file("/etc/passwd", 1 << 20, {12345, {}})) << "root's are taken, too";
}

TEST_F(trusted_file, what_is_no_readable_file_is_told_with_a_remedy) {
  fs::create_directory(root / "folder.json");
  expect_refused(root / "folder.json", "is no regular file");
  ::mkfifo((root / "fifo.json").c_str(), 0600);
  expect_refused(root / "fifo.json", "is no regular file");
  expect_refused("/dev/zero", "is no regular file");
  fs::create_symlink("nowhere", root / "dangling.json");
  expect_refused(root / "dangling.json", "is a link to \"nowhere\", which doesn't exist");
  fs::create_symlink("loop.json", root / "loop.json");
  expect_refused(root / "loop.json", "lead in a circle");
  expect_refused(root / "missing.json", "there is no such file");
  EXPECT_EQ(read_trusted_file(good, 1, who).error().code, errc::too_large);
}

TEST_F(trusted_file, one_without_permission_is_told) {
  ::chmod(good.c_str(), 0);
  ::chmod(root.c_str(), 0755);
  // Root may read everything, so another has to try.
  bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65533), 0);
  }
  auto text = read_trusted_file(good, 100, who);
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("permission denied"), std::string::npos);
  EXPECT_NE(text.error().message.find("chown"), std::string::npos);
}

TEST_F(trusted_file, what_others_may_write_is_refused) {
  ::chmod(good.c_str(), 0646);
  expect_refused(good, "can be written to by everybody; chmod o-w");
  ::chmod(good.c_str(), 0644);
  ::chmod(root.c_str(), 0777);
  expect_refused(good, "its folder can be written to by everybody");
  expect_folder_refused("chmod o-w");
  ::chmod(root.c_str(), 01777);
  EXPECT_TRUE(read_trusted_file(good, 2, who)) << "sticky, as /tmp is";
}

TEST_F(trusted_file, what_somebody_else_owns_is_refused) {
  who.account = ::geteuid() + 1;
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(good.c_str(), 4242, 0), 0);
  }
  expect_refused(good, "neither to this account");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(root.c_str(), 4242, 0), 0);
  }
  expect_folder_refused("chown");
}

TEST_F(trusted_file, a_private_group_may_write_and_another_may_not) {
  ::chmod(good.c_str(), 0664);
  if (::geteuid() == 0) {
    EXPECT_TRUE(read_trusted_file(good, 2, who)) << "root's own group";
    ASSERT_EQ(::chown(good.c_str(), 0, 100), 0);
    expect_refused(good, "can be written to by the group 100; chmod g-w");
  }
}

TEST_F(trusted_file, an_access_list_counts) {
  auto* list = ::acl_from_text("u::rw,g::r,o::r,u:4242:rw,m::rw");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(::acl_set_file(good.c_str(), ACL_TYPE_ACCESS, list), 0);
  ::acl_free(list);
  expect_refused(good, "setfacl -b");
}

TEST_F(trusted_file, nothing_is_taken_from_where_guests_write) {
  auto planted = write(guests / "planted.json");
  expect_refused(planted, "code in the sandbox can write to");
  fs::create_symlink(planted, root / "link.json");
  expect_refused(root / "link.json", "code in the sandbox can write to");
  fs::create_directory_symlink(guests, root / "way");
  expect_refused(root / "way" / "planted.json", "code in the sandbox can write to");
  // The guests' folder itself by another name.
  who.guest_folders = {root / "way"};
  expect_refused(planted, "code in the sandbox can write to");
  who.guest_folders = {root};
  expect_folder_refused("code in the sandbox can write to");
}

TEST_F(trusted_file, a_folder_lists_json_in_any_case) {
  write(root / "B.JSON");
  write(root / "a.Json");
  write(root / "no.json.bak");
  write(root / "json");
  fs::create_symlink("me@host.1:2", root / ".#good.json");
  EXPECT_EQ(list_trusted_folder(root, who).value(),
            (std::vector<std::string>{root / "B.JSON", root / "a.Json", root / "good.json"}));
  EXPECT_TRUE(list_trusted_folder(root / "missing", who).value().empty());
  EXPECT_FALSE(list_trusted_folder(good, who));
  fs::create_symlink("nowhere", root / "gone");
  EXPECT_FALSE(list_trusted_folder(root / "gone", who));
}

} // namespace
} // namespace bulkhead
