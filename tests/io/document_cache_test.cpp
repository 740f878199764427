#include "actors/document_cache.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "protocol/cached_documents.hpp"

namespace bulkhead {
namespace {

namespace fs = std::filesystem;

server_entry entry_of(const std::string& name) {
  server_entry entry;
  entry.name = entry.alias = name;
  entry.command = "npx";
  return entry;
}

server_documents documents_of(const std::string& name, std::size_t bytes = 10) {
  tool_document tool;
  tool.name = "read";
  tool.description = std::string(bytes, 'x');
  server_documents documents{name, name, "", {tool}, "1.0"};
  assign_tool_aliases(documents.tools);
  return documents;
}

class document_cache_test : public ::testing::Test {
protected:
  document_cache_test() {
    std::string pattern = "/tmp/bulkhead-cache-XXXXXX";
    root = ::mkdtemp(pattern.data());
    folder = root + "/below/documents";
  }
  ~document_cache_test() override { fs::remove_all(root); }

  document_cache make() {
    return {folder, std::make_shared<spdlog::logger>(
                        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log))};
  }
  std::string file(const std::string& name) const {
    return folder + "/" + cached_documents_name(entry_of(name));
  }
  static unsigned mode_of(const std::string& path) {
    struct stat info {};
    ::stat(path.c_str(), &info);
    return info.st_mode & 0777;
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
  }

  std::string root;
  std::string folder;
  std::ostringstream log;
};

TEST_F(document_cache_test, keeps_documents_for_us_alone) {
  auto cache = make();
  EXPECT_EQ(cache.load(entry_of("files")), nullptr);
  EXPECT_FALSE(fs::exists(folder));
  cache.store(entry_of("files"), documents_of("files"));
  auto back = make().load(entry_of("files"));
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(*back, documents_of("files"));
  EXPECT_EQ(mode_of(folder), 0700U);
  EXPECT_EQ(mode_of(file("files")), 0600U);
  EXPECT_EQ(count(), 1U) << "and nothing beside it";
  auto other = entry_of("files");
  other.args = {"--another"};
  EXPECT_EQ(cache.load(other), nullptr);
  EXPECT_EQ(log.str(), "");
}

TEST_F(document_cache_test, what_is_damaged_is_dropped_and_told) {
  auto cache = make();
  for (const std::string& text : {std::string{"{\"format\":1,"}, std::string{},
                                  encode_cached_documents(documents_of("others")),
                                  std::string(largest_cached_documents + 1, ' ')}) {
    cache.store(entry_of("files"), documents_of("files"));
    std::ofstream{file("files")} << text;
    EXPECT_EQ(cache.load(entry_of("files")), nullptr);
    EXPECT_FALSE(fs::exists(file("files")));
  }
  EXPECT_NE(log.str().find("\"files\""), std::string::npos);
}

TEST_F(document_cache_test, what_others_can_write_is_not_believed) {
  auto cache = make();
  cache.store(entry_of("files"), documents_of("files"));
  fs::permissions(file("files"), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(cache.load(entry_of("files")), nullptr);
  cache.store(entry_of("files"), documents_of("files"));
  fs::remove(file("files"));
  std::ofstream{root + "/elsewhere"} << encode_cached_documents(documents_of("files"));
  fs::permissions(root + "/elsewhere", fs::perms::others_write, fs::perm_options::add);
  fs::create_symlink(root + "/elsewhere", file("files"));
  EXPECT_EQ(cache.load(entry_of("files")), nullptr);
  EXPECT_TRUE(fs::exists(root + "/elsewhere")) << "only the link goes";
}

TEST_F(document_cache_test, has_bounds) {
  auto cache = make();
  cache.store(entry_of("large"), documents_of("large", largest_cached_documents));
  EXPECT_EQ(cache.load(entry_of("large")), nullptr);
  for (int i = 0; i < 10; ++i) {
    auto name = "big" + std::to_string(i);
    cache.store(entry_of(name), documents_of(name, 7 * mebibyte));
    // Files that were written in the same tick are of the same age.
    fs::last_write_time(file(name), fs::file_time_type::clock::now() - std::chrono::hours{20 - i});
  }
  EXPECT_EQ(cache.load(entry_of("big0")), nullptr) << "the oldest goes first";
  EXPECT_NE(cache.load(entry_of("big9")), nullptr);
  EXPECT_LE(count(), 9U);
  for (int i = 0; i < 300; ++i) {
    auto name = "small" + std::to_string(i);
    cache.store(entry_of(name), documents_of(name));
  }
  EXPECT_EQ(count(), 256U);
}

TEST_F(document_cache_test, a_folder_that_cannot_be_written_costs_nothing_else) {
  std::ofstream{root + "/file"} << "x";
  folder = root + "/file/documents";
  auto cache = make();
  cache.store(entry_of("files"), documents_of("files"));
  EXPECT_EQ(cache.load(entry_of("files")), nullptr);
  EXPECT_NE(log.str().find("can't be searched"), std::string::npos);
  document_cache none{"", nullptr};
  none.store(entry_of("files"), documents_of("files"));
  EXPECT_EQ(none.load(entry_of("files")), nullptr);
}

} // namespace
} // namespace bulkhead
