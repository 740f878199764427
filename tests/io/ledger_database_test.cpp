#include "actors/ledger_database.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;
using access = ledger_database::access;

constexpr std::int64_t day = 86'400'000;

ledger_run run_at(std::int64_t at, const std::string& id) {
  ledger_run run;
  run.run = id;
  run.at = at;
  run.owner = "local";
  run.outcome = "success";
  return run;
}

ledger_call call_at(std::int64_t at, const std::string& run, const std::string& server,
                    const std::string& tool, const std::string& outcome = "success") {
  ledger_call call;
  call.run = run;
  call.at = at;
  call.owner = "local";
  call.server = server;
  call.tool = tool;
  call.outcome = outcome;
  return call;
}

struct ledger_database_test : ::testing::Test {
  ledger_database_test() {
    std::string pattern = fs::temp_directory_path() / "bulkhead-ledger-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    rules.path = folder / "state" / "ledger.db";
    rules.patience = std::chrono::milliseconds{5'000};
  }
  ~ledger_database_test() override { fs::remove_all(folder); }

  ledger_database open(access as = access::write) {
    auto made = ledger_database::open(rules, as);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  void execute(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(rules.path.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  errc failure(access as = access::write, const char* part = "") {
    auto made = ledger_database::open(rules, as);
    EXPECT_FALSE(made);
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
    return made.error().code;
  }

  fs::path folder;
  ledger_database::rules rules;
};

TEST_F(ledger_database_test, keeps_every_member) {
  ledger_run run{"0123abcd",       1'000,         "ann", "agent", "1.2",   "5e55",
                 {"aa", 3, "x=1"}, {"a", "b\"c"}, 4,     5,       "error", "ValueError"};
  ledger_call call{"0123abcd",      1'001, "ann", "a",      "t\n\"",
                   {"bb", 2, "{}"}, 7,     8,     "denied", "deny rule"};
  auto database = open();
  ASSERT_TRUE(database.store({run}, {call}));
  auto again = open(access::read);
  EXPECT_EQ(again.read({})->runs, std::vector{run});
  ledger_query calls;
  calls.calls = true;
  EXPECT_EQ(again.read(calls)->calls, std::vector{call});
  run.code.text.reset();
  run.run = "0123abce";
  ASSERT_TRUE(database.store({run}, {}));
  EXPECT_EQ(again.read({})->runs.front().code.text, std::nullopt);
}

TEST_F(ledger_database_test, is_the_accounts_alone) {
  auto database = open();
  ASSERT_TRUE(database.store({run_at(1, "a")}, {}));
  for (const auto& each : fs::directory_iterator{folder / "state"}) {
    struct stat info {};
    ASSERT_EQ(::stat(each.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << each.path();
  }
  ::chmod(rules.path.c_str(), 0644);
  open();
  struct stat info {};
  ASSERT_EQ(::stat(rules.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(ledger_database_test, finds_what_is_asked_for) {
  auto database = open();
  std::vector<ledger_run> runs = {run_at(10, "aa01"), run_at(20, "ab02"), run_at(30, "bb03")};
  runs[1].servers = {"github", "files"};
  runs[2].outcome = "timeout";
  runs[2].owner = "ann";
  ASSERT_TRUE(database.store(runs, {call_at(21, "ab02", "github", "delete_repo", "denied"),
                                    call_at(22, "ab02", "files", "read[1]"),
                                    call_at(31, "bb03", "files", "read")}));
  auto ids = [&](ledger_query query) {
    std::string result;
    auto page = database.read(std::move(query));
    EXPECT_TRUE(page);
    for (const auto& each : page->runs) {
      result += each.run + " ";
    }
    for (const auto& each : page->calls) {
      result += each.tool + " ";
    }
    return result + (page->more ? "…" : "");
  };
  EXPECT_EQ(ids({}), "bb03 ab02 aa01 ");
  EXPECT_EQ(ids({.limit = 2}), "bb03 ab02 …");
  EXPECT_EQ(ids({.since = 20}), "bb03 ab02 ");
  EXPECT_EQ(ids({.run = "a"}), "ab02 aa01 ");
  EXPECT_EQ(ids({.run = "ab02"}), "ab02 ");
  EXPECT_EQ(ids({.run = "x' OR 1=1 --"}), "");
  EXPECT_EQ(ids({.outcome = "timeout"}), "bb03 ");
  EXPECT_EQ(ids({.owner = "ann"}), "bb03 ");
  EXPECT_EQ(ids({.server = "git*"}), "ab02 ");
  EXPECT_EQ(ids({.tool = "read"}), "bb03 ");
  EXPECT_EQ(ids({.calls = true}), "read read[1] delete_repo ");
  EXPECT_EQ(ids({.calls = true, .tool = "read*"}), "read read[1] ");
  EXPECT_EQ(ids({.calls = true, .tool = "read[1]"}), "read[1] ") << "globs as policy has them";
  EXPECT_EQ(ids({.calls = true, .server = "files", .outcome = "success", .limit = 1}), "read …");
  EXPECT_EQ(ids({.calls = true, .run = "ab", .outcome = "denied"}), "delete_repo ");
}

TEST_F(ledger_database_test, texts_are_found_whatever_their_case_and_only_as_they_are) {
  auto database = open();
  std::vector<ledger_run> runs = {run_at(1, "a"), run_at(2, "b"), run_at(3, "c")};
  runs[0].client = "Claude Code";
  runs[1].code.text = "print('100%')";
  runs[2].servers = {"files"};
  runs[2].error = "ValueError";
  auto call = call_at(4, "c", "files", "read_file");
  call.arguments.text = R"({"path":"/a_b"})";
  ASSERT_TRUE(database.store(runs, {call}));
  auto found = [&](ledger_query query) {
    std::string result;
    auto page = database.read(std::move(query));
    EXPECT_TRUE(page);
    for (const auto& each : page->runs) {
      result += each.run;
    }
    return result + std::string(page->calls.size(), '+');
  };
  EXPECT_EQ(found({.text = "claude"}), "a");
  EXPECT_EQ(found({.text = "100%"}), "b");
  EXPECT_EQ(found({.text = "1_0"}), "");
  EXPECT_EQ(found({.text = "valueerror"}), "c");
  EXPECT_EQ(found({.text = "FILES"}), "c");
  EXPECT_EQ(found({.calls = true, .text = "a_b"}), "+");
  EXPECT_EQ(found({.calls = true, .text = "READ_file"}), "+");
  EXPECT_EQ(found({.calls = true, .text = "x"}), "");
}

TEST_F(ledger_database_test, pages_of_one_moment_hold_together) {
  auto database = open();
  ASSERT_TRUE(database.store({run_at(1, "a"), run_at(2, "b"), run_at(2, "c")}, {}));
  auto first = database.read({.limit = 2, .until = 2});
  ASSERT_TRUE(database.store({run_at(3, "d")}, {}));
  auto second = database.read({.limit = 2, .until = 2, .skip = 2});
  ASSERT_EQ(first->runs.size(), 2U);
  EXPECT_TRUE(first->more);
  ASSERT_EQ(second->runs.size(), 1U);
  EXPECT_EQ(second->runs[0].run, "a");
  EXPECT_FALSE(second->more);
  EXPECT_EQ(database.read({.until = 1})->runs.size(), 1U);
}

TEST_F(ledger_database_test, the_first_word_on_a_run_holds) {
  auto database = open();
  auto late = run_at(2, "a");
  late.outcome = "error";
  ASSERT_TRUE(database.store({run_at(1, "a"), late}, {}));
  ASSERT_TRUE(database.store({late}, {}));
  auto page = database.read({});
  ASSERT_EQ(page->runs.size(), 1U);
  EXPECT_EQ(page->runs[0].outcome, "success");
}

TEST_F(ledger_database_test, what_is_old_goes) {
  rules.days = 2;
  auto database = open();
  std::vector<ledger_call> calls(12'000, call_at(day, "a", "s", "t"));
  ASSERT_TRUE(database.store({run_at(day, "a"), run_at(9 * day, "b")}, calls));
  ASSERT_TRUE(database.store({}, {call_at(9 * day, "b", "s", "t")}));
  auto dropped = database.prune(10 * day);
  ASSERT_TRUE(dropped);
  EXPECT_EQ(*dropped, 12'001U);
  EXPECT_EQ(database.read({})->runs.size(), 1U);
  EXPECT_EQ(database.read({.calls = true})->calls.size(), 1U);
}

TEST_F(ledger_database_test, what_is_too_much_goes_the_oldest_first) {
  rules.most_bytes = 400'000;
  auto database = open();
  std::vector<ledger_call> calls;
  for (int i = 0; i < 1'000; ++i) {
    calls.push_back(call_at(9 * day + i, "a", "s", fmt::format("t{}", i)));
    calls.back().arguments.text = std::string(1'000, 'x');
  }
  ASSERT_TRUE(database.store({}, calls));
  EXPECT_TRUE(database.too_large());
  auto dropped = database.prune(9 * day + 1'000);
  ASSERT_TRUE(dropped);
  EXPECT_GT(*dropped, 0U);
  EXPECT_LT(*dropped, 1'000U);
  EXPECT_FALSE(database.too_large());
  EXPECT_EQ(database.read({.calls = true, .limit = 1})->calls[0].tool, "t999");
  EXPECT_TRUE(database.read({.calls = true, .tool = "t0"})->calls.empty());
}

TEST_F(ledger_database_test, other_files_are_left_alone_and_told) {
  fs::create_directories(folder / "state");
  EXPECT_EQ(failure(access::read), errc::not_found);
  std::ofstream{rules.path} << std::string(4'096, 'x');
  EXPECT_EQ(failure(), errc::unavailable);
  fs::remove(rules.path);
  execute("CREATE TABLE photos(name)");
  EXPECT_EQ(failure(access::write, "no ledger"), errc::denied);
  EXPECT_EQ(failure(access::read, "no ledger"), errc::denied);
  execute("DROP TABLE photos; PRAGMA user_version = 2");
  EXPECT_EQ(failure(access::write, "later version of Bulkhead"), errc::denied);
  EXPECT_EQ(failure(access::read, "move the file away"), errc::denied);
  fs::remove(rules.path);
  fs::create_symlink("/dev/null", rules.path);
  EXPECT_NE(failure(), errc::none);
  fs::remove(rules.path);
  ASSERT_EQ(::mkfifo(rules.path.c_str(), 0600), 0);
  EXPECT_EQ(failure(), errc::denied);
}

TEST_F(ledger_database_test, a_file_that_was_replaced_is_noticed) {
  auto database = open();
  EXPECT_TRUE(database.in_place());
  fs::rename(rules.path, folder / "elsewhere");
  EXPECT_FALSE(database.in_place());
  auto other = open();
  EXPECT_TRUE(other.in_place());
  EXPECT_FALSE(database.in_place());
}

TEST_F(ledger_database_test, several_write_at_once) {
  constexpr int writers = 4;
  constexpr int batches = 25;
  std::vector<std::thread> threads;
  std::vector<std::string> failures(writers);
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      // Each makes the file if it is the first.
      auto database = ledger_database::open(rules, access::write);
      if (!database) {
        failures[i] = database.error().message;
        return;
      }
      for (int n = 0; n < batches; ++n) {
        auto stored =
            database->store({run_at(n, fmt::format("{}-{}", i, n))}, {call_at(n, "a", "s", "t")});
        failures[i] += stored ? "" : stored.error().message + "; ";
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  for (const auto& each : failures) {
    EXPECT_EQ(each, "");
  }
  int runs = 0;
  auto database = open();
  ASSERT_TRUE(database.visit_runs({.limit = 1'000}, [&](const ledger_run&) { return ++runs > 0; }));
  EXPECT_EQ(runs, writers * batches);
}

TEST_F(ledger_database_test, a_locked_file_is_an_error_and_loses_the_batch_alone) {
  auto database = open();
  ASSERT_TRUE(database.store({run_at(1, "a")}, {}));
  rules.patience = std::chrono::milliseconds{50};
  sqlite3* blocker = nullptr;
  ASSERT_EQ(sqlite3_open(rules.path.c_str(), &blocker), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(blocker, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  {
    auto impatient = ledger_database::open(rules, access::write);
    ASSERT_TRUE(impatient) << impatient.error().message;
    auto stored = impatient->store({run_at(2, "b")}, {});
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, errc::unavailable);
    EXPECT_NE(stored.error().message.find("locked"), std::string::npos) << stored.error().message;
    sqlite3_exec(blocker, "ROLLBACK", nullptr, nullptr, nullptr);
    EXPECT_TRUE(impatient->store({run_at(3, "c")}, {}));
  }
  sqlite3_close(blocker);
  EXPECT_EQ(database.read({})->runs.size(), 2U);
}

} // namespace
} // namespace bulkhead
