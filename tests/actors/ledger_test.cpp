#define CAF_SUITE ledger

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "actors/ledger.hpp"
#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t now = 1'796'065'510'000; // 2026-11-30T19:05:10Z

/// A run with a ledger in a folder of its own.
struct ledger_fixture : invocation_fixture {
  ledger_fixture() {
    std::string pattern = fs::temp_directory_path() / "bulkhead-ledger-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    env->config->state_dir = folder;
    env->wall_clock = [] {
      return std::chrono::system_clock::time_point{std::chrono::milliseconds{now}};
    };
    keep_log();
    keep(ledger_mode::hashes);
  }

  ~ledger_fixture() override {
    caf::anon_send_exit(book, caf::exit_reason::kill);
    consume_messages();
    fs::remove_all(folder);
  }

  void keep(ledger_mode mode) {
    if (!book) {
      book = sys.spawn(bulkhead::ledger, env, backlog);
    }
    ledger = ledger_writer{[this] { return ledger_actor{book}; }, backlog, mode};
  }

  ledger_page read(bool calls) {
    ledger_page page;
    ledger_query query;
    query.calls = calls;
    auto reader = sys.spawn([&](caf::event_based_actor* self) {
      self->request(ledger_actor{book}, caf::infinite, read_atom::value, query)
          .then([&](const ledger_page& found) { page = found; },
                [&](const caf::error& reason) { failures.push_back(from_caf(reason, "read")); });
    });
    consume_messages();
    return page;
  }

  /// What became of the calls, the first one first.
  std::vector<std::string> outcomes() {
    std::vector<std::string> result;
    for (const auto& each : read(true).calls) {
      result.insert(result.begin(), each.server + "/" + each.tool + " " + each.outcome);
    }
    return result;
  }

  fs::path folder;
  std::shared_ptr<ledger_backlog> backlog = std::make_shared<ledger_backlog>();
  ledger_impl_actor book;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(ledger_tests, ledger_fixture)

CAF_TEST(a_run_and_its_calls_are_noted) {
  request.client = "agent";
  request.client_version = "1.2";
  start_code();
  files->call.answer = R"({"content":[]})";
  call(1, "files", "read_file", R"({"path":"a"})");
  tell(guest_done{"run-7", 0, {}, {}, {}});
  auto runs = read(false).runs;
  CAF_REQUIRE_EQUAL(runs.size(), 1u);
  const auto& run = runs[0];
  CAF_CHECK_EQUAL(run.run, "run-7");
  CAF_CHECK_EQUAL(run.client + " " + run.client_version, "agent 1.2");
  CAF_CHECK_EQUAL(run.owner, "local");
  CAF_CHECK_EQUAL(run.outcome, "success");
  CAF_CHECK_EQUAL(run.calls, 1u);
  CAF_CHECK_EQUAL(run.at, std::int64_t{now});
  CAF_CHECK(run.servers == std::vector<std::string>{"files"});
  // sha256("print(1)")
  CAF_CHECK_EQUAL(run.code.sha256,
                  "d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99");
  CAF_CHECK_EQUAL(run.code.bytes, 8u);
  CAF_CHECK(!run.code.text);
  auto calls = read(true).calls;
  CAF_REQUIRE_EQUAL(calls.size(), 1u);
  CAF_CHECK_EQUAL(calls[0].tool, "read-file");
  CAF_CHECK_EQUAL(calls[0].run, "run-7");
  CAF_CHECK_EQUAL(calls[0].arguments.bytes, 12u);
  CAF_CHECK_EQUAL(calls[0].result_bytes, 14u);
  CAF_CHECK(failures.empty());
}

CAF_TEST(so_are_calls_that_came_to_nothing) {
  start_code();
  files->call.answer = R"({"content":[],"isError" : true})";
  call(1, "files", "read-file");
  files->call.answer = R"({"content":[{"text":"\"isError\":true"}]})";
  call(2, "files", "read-file");
  files->call.refuse_with(errc::server_failed, "it died");
  call(3, "files", "read-file");
  call(4, "files", "delete-all");
  call(5, "files", "no-such");
  call(6, "vault", "open");
  tell(refused_call{7, {errc::invalid_argument, "no tool"}});
  files->call.held = true;
  call(8, "files", "read-file");
  pass(31s);
  CAF_CHECK(over(run_status::timeout));
  CAF_CHECK(outcomes() ==
            (std::vector<std::string>{"files/read-file tool_error", "files/read-file success",
                                      "files/read-file server_failed", "files/delete-all denied",
                                      "files/no-such not_found", "vault/open not_found",
                                      "/ invalid_argument", "files/read-file timeout"}));
  auto calls = read(true).calls;
  CAF_CHECK_EQUAL(calls[4].rule, "deny rule \"files/delete-all\"");
  auto runs = read(false).runs;
  CAF_REQUIRE_EQUAL(runs.size(), 1u);
  CAF_CHECK_EQUAL(runs[0].outcome, "timeout");
  CAF_CHECK_EQUAL(runs[0].calls, 7u);
}

CAF_TEST(a_call_that_its_server_gets_is_noted_however_many_were_refused) {
  start_code();
  for (std::uint64_t id = 1; id <= 10'500; ++id) {
    call(id, "files", "delete-all");
    if (id % 1000 == 0) {
      pass(300ms); // the ledger takes what has come
    }
  }
  files->call.answer = R"({"content":[]})";
  call(20'000, "files", "read-file", R"({"path":"a"})");
  tell(guest_done{"run-7", 0, {}, {}, {}});
  auto calls = read(true).calls;
  CAF_REQUIRE(!calls.empty());
  CAF_CHECK(calls[0].tool == "read-file");
  CAF_CHECK(calls[0].arguments.bytes == 12u);
  CAF_CHECK(!calls[0].arguments.sha256.empty());
  CAF_CHECK(read(false).runs[0].calls == 10'501u);
}

CAF_TEST(an_open_call_keeps_its_record_whatever_has_the_same_id) {
  request.session = session_lease{"handle", 3, {"files"}, {}};
  start_code();
  files->call.held = true;
  call(1, "files", "read-file", R"({"path":"a"})");
  pass(30s); // its time is up, and the code is told to stop
  call(1, "files", "delete-all");
  call(2, "files", "read-file");
  guest_done done{"run-7", 130, {}, {}, {}};
  tell(done);
  CAF_CHECK(outcomes().size() == 2u);
  auto calls = read(true).calls;
  CAF_CHECK(std::all_of(calls.begin(), calls.end(),
                        [](const auto& each) { return each.tool == "read-file"; }));
  CAF_CHECK(std::any_of(calls.begin(), calls.end(),
                        [](const auto& each) { return each.arguments.bytes == 12; }));
}

CAF_TEST(texts_are_kept_on_request_and_within_a_bound) {
  keep(ledger_mode::full);
  start_code();
  call(1, "files", "read-file", R"({"path":"a"})");
  auto large = R"({"path":")" + std::string(ledger_text_limit, 'x') + "\"}";
  call(2, "files", "read-file", large);
  tell(guest_done{"run-7", 0, {}, {}, {}});
  auto calls = read(true).calls;
  CAF_REQUIRE_EQUAL(calls.size(), 2u);
  CAF_CHECK(calls[1].arguments.text == R"({"path":"a"})");
  CAF_CHECK(!calls[0].arguments.text);
  CAF_CHECK_EQUAL(calls[0].arguments.bytes, large.size());
  CAF_CHECK(read(false).runs[0].code.text == "print(1)");
}

CAF_TEST(nothing_is_kept_if_nothing_is_wanted) {
  ledger = {};
  start_code();
  call(1, "files", "read-file");
  tell(guest_done{"run-7", 0, {}, {}, {}});
  CAF_CHECK(over(run_status::success));
  CAF_CHECK(read(true).calls.empty());
  CAF_CHECK(read(false).runs.empty());
}

CAF_TEST(a_session_is_named_without_its_handle) {
  request.session = session_lease{"0123456789abcdef0123456789abcdef", 1, {"files"}, box, false};
  start_code();
  tell(guest_done{"run-7", 0, {}, {}, {}});
  auto runs = read(false).runs;
  CAF_REQUIRE_EQUAL(runs.size(), 1u);
  CAF_CHECK_EQUAL(runs[0].session.size(), 16u);
  CAF_CHECK(runs[0].session.find("0123456") == std::string::npos);
}

CAF_TEST(a_file_that_cannot_be_written_costs_the_records_alone) {
  fs::create_directory(folder / "ledger.db");
  start_code();
  call(1, "files", "read-file");
  tell(guest_done{"run-7", 0, {}, {}, {}});
  CAF_CHECK(over(run_status::success));
  pass(1s);
  CAF_CHECK_EQUAL(logged("the ledger lost 2 records"), 1u);
  // It is tried again, and told of once a minute.
  fs::remove(folder / "ledger.db");
  ledger.record(ledger_run{.run = "a", .at = now});
  consume_messages();
  pass(1s);
  CAF_CHECK_EQUAL(read(false).runs.size(), 1u);
  CAF_CHECK_EQUAL(logged("the ledger lost"), 1u);
}

CAF_TEST(a_flood_is_dropped_and_told) {
  keep(ledger_mode::hashes);
  for (std::uint32_t i = 0; i < ledger_backlog::most_waiting + 101; ++i) {
    ledger.record(
        ledger_call{.run = "a", .at = now, .server = "s", .tool = "t", .outcome = "success"});
  }
  consume_messages();
  pass(1s);
  CAF_CHECK_EQUAL(logged("the ledger lost 100 records"), 1u);
  auto page = read(true);
  CAF_CHECK(page.more);
  CAF_CHECK_EQUAL(page.calls.size(), 100u);
}

CAF_TEST(large_texts_weigh_more) {
  keep(ledger_mode::full);
  std::string text(ledger_text_limit, 'x');
  for (int i = 0; i < 1000; ++i) {
    ledger.record(ledger_call{.run = "a", .arguments = ledger.kept(text)});
  }
  auto kept = backlog->take();
  CAF_CHECK(kept.calls.size() < 300);
  CAF_CHECK_EQUAL(kept.calls.size() + kept.dropped, 999u);
}

CAF_TEST(a_stop_stores_what_came_before) {
  ledger.record(ledger_run{.run = "a", .at = now, .outcome = "success"});
  bool stopped = false;
  auto asking = sys.spawn([&](caf::event_based_actor* self) {
    self->request(ledger_actor{book}, caf::infinite, stop_atom::value).then([&](caf::ok_atom) {
      stopped = true;
    });
  });
  consume_messages();
  CAF_CHECK(stopped);
  auto file = ledger_database::open(ledger_rules(*env->config), ledger_database::access::read);
  CAF_REQUIRE(file);
  CAF_CHECK_EQUAL(file->read({})->runs.size(), 1u);
  struct stat info {};
  CAF_CHECK_EQUAL(::stat((folder / "ledger.db").c_str(), &info), 0);
  auto mode = info.st_mode & 0777;
  CAF_CHECK_EQUAL(mode, 0600u);
}

CAF_TEST_FIXTURE_SCOPE_END()
