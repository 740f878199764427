#include "actors/artifact_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace std::string_literals;

stored_run run_number(int number, const std::string& owner = "local") {
  auto digits = std::to_string(number);
  return {std::string(32 - digits.size(), '0') + digits, owner};
}

struct artifact_folder_test : ::testing::Test {
  artifact_folder_test() {
    std::string pattern = fs::temp_directory_path() / "artifacts-XXXXXX";
    state = ::mkdtemp(pattern.data());
    rules.root = state / "artifacts";
    rules.quota = 100'000;
    rules.spill = 50'000;
    rules.now = [this] { return std::chrono::system_clock::now() + later; };
    open();
  }

  ~artifact_folder_test() override {
    store.reset();
    fs::remove_all(state);
  }

  void open() { store = std::make_unique<artifact_folder>(rules); }

  kept_bytes append(const stored_run& run, const std::string& bytes,
                    stream_id stream = stream_id::out) {
    return store->append(run, stream, bytes);
  }

  /// What a whole run leaves: its artifacts, by name and bytes.
  void leave(const stored_run& run, const std::vector<std::pair<std::string, std::string>>& all) {
    for (const auto& [name, bytes] : all) {
      auto saved = store->save(run, {name, "text/plain", bytes});
      ASSERT_TRUE(saved) << saved.error().message;
    }
    ASSERT_TRUE(store->seal(run, 0, 0));
  }

  expected<resource_part> read(const stored_run& run, const std::string& name,
                               std::uint64_t offset = 0, std::optional<std::uint64_t> length = {},
                               std::size_t most = 1 << 20) const {
    return store->read({run.owner, {run.handle, {}, name, offset, length}}, most);
  }

  expected<resource_part> read_stream(const stored_run& run, stream_id stream = stream_id::out,
                                      std::uint64_t offset = 0, std::size_t most = 1 << 20) const {
    return store->read({run.owner, {run.handle, stream, {}, offset, {}}}, most);
  }

  /// Bytes of all files but the lock.
  std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const auto& each : fs::recursive_directory_iterator{rules.root}) {
      bytes += each.is_regular_file() && each.path().filename() != "lock" ? each.file_size() : 0;
    }
    return bytes;
  }

  fs::path state;
  artifact_folder::rules rules;
  std::chrono::seconds later{0};
  std::unique_ptr<artifact_folder> store;
};

TEST_F(artifact_folder_test, bytes_come_back_as_they_were) {
  std::string all;
  for (int i = 0; i < 10'000; ++i) {
    all += static_cast<char>(i * 31);
  }
  const auto run = run_number(1);
  EXPECT_EQ(append(run, all.substr(0, 4000)).bytes, 4000U);
  append(run, "err\xFF\n", stream_id::err);
  const auto kept = append(run, all.substr(4000));
  EXPECT_EQ(kept, (kept_bytes{10'000, rules.root + "/" + run.handle + "/stdout", {}}));
  EXPECT_FALSE(read_stream(run)) << "not before the run is over";
  ASSERT_TRUE(store->seal(run, 10'000, 5));
  auto part = read_stream(run);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->bytes, all);
  EXPECT_EQ(part->kept, 10'000U);
  EXPECT_EQ(part->total, 10'000U);
  EXPECT_EQ(part->why, "");
  EXPECT_EQ(read_stream(run, stream_id::err)->bytes, "err\xFF\n");
  EXPECT_EQ(read_stream(run, stream_id::out, 9'990)->bytes, all.substr(9'990));
  EXPECT_EQ(read_stream(run, stream_id::out, 100, 7)->bytes, all.substr(100, 7));
  EXPECT_EQ(read_stream(run, stream_id::out, 20'000)->bytes, "");
}

TEST_F(artifact_folder_test, the_spill_limit_is_exact_and_shared_by_both_streams) {
  const auto run = run_number(1);
  append(run, std::string(20'000, 'e'), stream_id::err);
  EXPECT_EQ(append(run, std::string(30'001, 'x')).bytes, 30'000U);
  const auto kept = append(run, "more");
  EXPECT_EQ(kept.bytes, 30'000U);
  EXPECT_NE(kept.why.find("MCP_BRIDGE_SPILL"), std::string::npos);
  EXPECT_EQ(append(run, "x", stream_id::err).bytes, 20'000U);
  ASSERT_TRUE(store->seal(run, 30'005, 20'001));
  const auto part = read_stream(run);
  EXPECT_EQ(part->kept, 30'000U);
  EXPECT_EQ(part->total, 30'005U);
  EXPECT_NE(part->why.find("MCP_BRIDGE_SPILL"), std::string::npos);
}

TEST_F(artifact_folder_test, files_and_folders_are_the_accounts_alone) {
  ::umask(0);
  append(run_number(1), "x");
  leave(run_number(2), {{"a", "b"}});
  ::umask(022);
  int seen = 0;
  struct stat info {};
  ASSERT_EQ(::stat(rules.root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  for (const auto& each : fs::recursive_directory_iterator{rules.root}) {
    ASSERT_EQ(::stat(each.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, each.is_directory() ? 0700U : 0600U) << each.path();
    ++seen;
  }
  EXPECT_EQ(seen, 7);
}

TEST_F(artifact_folder_test, no_name_becomes_a_path) {
  const auto run = run_number(1);
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto* name : {"stdout", "1", "1.json", "lock", "..%2f", "-rf", "é\\", "%2e%2e"}) {
    all.emplace_back(name, "content of "s + name);
  }
  leave(run, all);
  for (const auto& [name, bytes] : all) {
    EXPECT_EQ(read(run, name)->bytes, bytes) << name;
  }
  for (const auto& each : fs::directory_iterator{fs::path{rules.root} / run.handle}) {
    EXPECT_EQ(each.path().filename().string().find_first_not_of("0123456789.json"),
              std::string::npos);
  }
  EXPECT_FALSE(read_stream(run)) << "an artifact of that name is no stream";
}

TEST_F(artifact_folder_test, the_last_of_a_name_counts) {
  const auto run = run_number(1);
  leave(run, {{"a", "first"}, {"b", "other"}, {"a", "second"}});
  EXPECT_EQ(read(run, "a")->bytes, "second");
  EXPECT_EQ(store->list("local", "")->entries.size(), 2U);
}

TEST_F(artifact_folder_test, foreign_unknown_and_old_answer_alike) {
  const auto run = run_number(1);
  leave(run, {{"a", "b"}});
  auto same = [&](const expected<resource_part>& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), read(run_number(2), "a").error());
  };
  same(read({run.handle, "other"}, "a"));
  same(read(run, "b"));
  same(read_stream(run));
  same(store->read({"local", {"../" + run.handle, {}, "a", 0, {}}}, 1));
  later = 24h + 1min;
  same(read(run, "a"));
  EXPECT_TRUE(store->list("local", "")->entries.empty());
  later = 0s;
  EXPECT_TRUE(read(run, "a"));
  EXPECT_TRUE(store->list("other", "")->entries.empty());
}

TEST_F(artifact_folder_test, the_oldest_go_first_and_the_quota_holds) {
  for (int i = 1; i <= 30; ++i) {
    leave(run_number(i), {{"a", std::string(9'000, 'x')}});
    EXPECT_LE(used(), rules.quota);
  }
  EXPECT_FALSE(read(run_number(1), "a"));
  EXPECT_FALSE(read(run_number(15), "a"));
  EXPECT_TRUE(read(run_number(30), "a"));
  EXPECT_TRUE(read(run_number(25), "a"));
}

TEST_F(artifact_folder_test, what_cannot_fit_takes_nothing_away) {
  leave(run_number(1), {{"a", "kept"}});
  auto saved = store->save(run_number(2), {"b", "a/b", std::string(100'001, 'x')});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, errc::limit);
  EXPECT_NE(saved.error().message.find("MCP_BRIDGE_ARTIFACTS"), std::string::npos);
  EXPECT_TRUE(read(run_number(1), "a"));
}

TEST_F(artifact_folder_test, runs_that_go_on_lose_nothing_and_stay_within_the_quota) {
  rules.spill = 1'000'000;
  open();
  leave(run_number(9), {{"old", std::string(1000, 'x')}});
  const auto first = run_number(1);
  const auto second = run_number(2);
  append(first, std::string(60'000, '1'));
  const auto kept = append(second, std::string(60'000, '2'));
  EXPECT_LT(kept.bytes, 60'000U);
  EXPECT_NE(kept.why.find("MCP_BRIDGE_ARTIFACTS"), std::string::npos);
  EXPECT_LE(used(), rules.quota);
  EXPECT_EQ(append(second, "more").bytes, kept.bytes) << "no gaps";
  ASSERT_TRUE(store->seal(first, 60'000, 0));
  ASSERT_TRUE(store->seal(second, 60'004, 0));
  EXPECT_EQ(read_stream(first)->bytes, std::string(60'000, '1'));
  EXPECT_EQ(read_stream(second)->bytes, std::string(kept.bytes, '2'));
}

TEST_F(artifact_folder_test, the_count_holds) {
  rules.count = 10;
  open();
  for (int i = 1; i <= 25; ++i) {
    leave(run_number(i), {{"a", "1"}, {"b", "2"}});
    const auto page = store->list("local", "");
    EXPECT_LE(page->entries.size(), 10U);
    EXPECT_GE(page->entries.size(), std::min<std::size_t>(10, 2 * i));
  }
}

TEST_F(artifact_folder_test, several_processes_share_one_quota) {
  artifact_folder other{rules};
  const auto mine = run_number(1);
  append(mine, std::string(40'000, 'm'));
  for (int i = 2; i <= 20; ++i) {
    auto saved = other.save(run_number(i), {"a", "a/b", std::string(20'000, 'x')});
    ASSERT_TRUE(saved) << saved.error().message;
    ASSERT_TRUE(other.seal(run_number(i), 0, 0));
    EXPECT_LE(used(), rules.quota);
  }
  ASSERT_TRUE(other.sweep());
  EXPECT_EQ(append(mine, "end").bytes, 40'003U) << "a run that goes on isn't another's to remove";
  ASSERT_TRUE(store->seal(mine, 40'003, 0));
  EXPECT_EQ(other.read({"local", {mine.handle, stream_id::out, {}, 40'000, {}}}, 10)->bytes, "end");
}

TEST_F(artifact_folder_test, a_sweep_removes_what_the_dead_left_and_what_is_old) {
  ASSERT_TRUE(store->sweep()) << "nothing there yet";
  EXPECT_FALSE(fs::exists(rules.root));
  leave(run_number(1), {{"good", "1"}});
  append(run_number(2), "never finished");
  ASSERT_TRUE(store->save(run_number(2), {"finished", "a/b", "x"}));
  store.reset();
  const auto folder = fs::path{rules.root} / run_number(1).handle;
  std::ofstream{folder / "7"} << "no description";
  std::ofstream{folder / "8.json"} << "{}";
  std::ofstream{fs::path{rules.root} / "lock"} << "nonsense";
  open();
  ASSERT_TRUE(store->sweep());
  EXPECT_FALSE(fs::exists(folder / "7"));
  EXPECT_FALSE(fs::exists(folder / "8.json"));
  EXPECT_TRUE(read(run_number(1), "good"));
  EXPECT_TRUE(read(run_number(2), "finished"));
  EXPECT_FALSE(read_stream(run_number(2)));
  later = 25h;
  ASSERT_TRUE(store->sweep());
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(std::distance(fs::directory_iterator{rules.root}, {}), 1) << "the lock alone";
}

TEST_F(artifact_folder_test, a_lower_quota_holds_from_the_sweep_on) {
  for (int i = 1; i <= 5; ++i) {
    leave(run_number(i), {{"a", std::string(10'000, 'x')}});
  }
  rules.quota = 25'000;
  open();
  ASSERT_TRUE(store->sweep());
  EXPECT_LE(used(), 25'000U);
  EXPECT_TRUE(read(run_number(5), "a"));
}

TEST_F(artifact_folder_test, a_run_that_is_lost_leaves_nothing) {
  append(run_number(1), "x");
  ASSERT_TRUE(store->save(run_number(1), {"a", "a/b", "x"}));
  store->discard(run_number(1).handle);
  EXPECT_EQ(used(), 0U);
  EXPECT_FALSE(fs::exists(fs::path{rules.root} / run_number(1).handle));
}

TEST_F(artifact_folder_test, links_are_not_followed) {
  fs::create_directory(state / "elsewhere");
  fs::create_symlink(state / "elsewhere", rules.root);
  EXPECT_FALSE(append(run_number(1), "x").why.empty());
  fs::remove(rules.root);
  leave(run_number(2), {{"a", "b"}});
  const auto folder = fs::path{rules.root} / run_number(2).handle;
  fs::remove(folder / "1");
  std::ofstream{state / "secret"} << "secret";
  fs::create_symlink(state / "secret", folder / "1");
  EXPECT_FALSE(read(run_number(2), "a"));
  fs::create_directory_symlink(folder, fs::path{rules.root} / run_number(3).handle);
  EXPECT_FALSE(read(run_number(3), "a"));
  EXPECT_TRUE(fs::is_empty(state / "elsewhere"));
}

TEST_F(artifact_folder_test, lists_come_in_pages_latest_first) {
  rules.quota = 10'000'000;
  open();
  for (int i = 1; i <= 120; ++i) {
    leave(run_number(i), {{"a", "1"}});
  }
  std::vector<std::string> uris;
  std::string cursor;
  int pages = 0;
  do {
    const auto page = store->list("local", cursor);
    ASSERT_TRUE(page);
    EXPECT_LE(page->entries.size(), 50U);
    for (const auto& each : page->entries) {
      uris.push_back(each.uri);
    }
    cursor = page->next;
    ++pages;
    if (pages == 1) {
      leave(run_number(500), {{"new", "1"}});
    }
  } while (!cursor.empty());
  EXPECT_EQ(pages, 3);
  ASSERT_EQ(uris.size(), 120U);
  EXPECT_EQ(uris.front(), artifact_uri(run_number(120).handle, "a"));
  EXPECT_EQ(uris.back(), artifact_uri(run_number(1).handle, "a"));
  for (const auto* bad : {"x", "1-", "-", "1-xyz", "99999999999999999999-0", "../.."}) {
    EXPECT_FALSE(store->list("local", bad)) << bad;
  }
}

TEST_F(artifact_folder_test, nothing_is_kept_where_the_limits_are_zero) {
  rules.spill = 0;
  open();
  EXPECT_NE(append(run_number(1), "x").why.find("MCP_BRIDGE_SPILL"), std::string::npos);
  ASSERT_TRUE(store->seal(run_number(1), 1, 0));
  rules.quota = 0;
  open();
  EXPECT_FALSE(store->save(run_number(2), {"a", "a/b", "x"}));
  EXPECT_FALSE(fs::exists(rules.root));
}

} // namespace
} // namespace bulkhead
