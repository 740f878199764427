#define CAF_SUITE run_book

#include "actors/run_book.hpp"
#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct book_fixture : session_fixture {
  book_fixture() {
    context.book = book;
    begin_session();
    initialize();
  }

  /// The id of the n-th run.
  std::string id(std::size_t number) const { return (*runs)[number]->request.id; }

  std::shared_ptr<run_book> book = std::make_shared<run_book>(env->budget);
};

shown_run named(const std::string& id) {
  shown_run run;
  run.run = id;
  return run;
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(run_book_tests, book_fixture)

CAF_TEST(a run is shown from its call to its end) {
  ask(1, "tools/call",
      {{"name", "run_python"}, {"arguments", {{"code", "1"}, {"servers", {"memory"}}}}});
  auto shown = book->now(10).running;
  CAF_REQUIRE(shown.size() == 1u);
  CAF_CHECK(shown[0].client == "test");
  CAF_CHECK(shown[0].client_version == "1");
  CAF_CHECK(shown[0].servers == std::vector<std::string>{"memory"});
  CAF_CHECK(shown[0].stage == "queued");
  caf::anon_send(session, run_progress{id(0), "running", false});
  caf::anon_send(session, run_progress{id(0), "hello", true});
  consume_messages();
  CAF_CHECK(book->find(id(0))->run.stage == "running");
  CAF_CHECK(book->find(id(0))->live == "hello\n");
  finish(0, success("hello\n"));
  CAF_CHECK(book->now(10).running.empty());
  auto found = book->find(id(0));
  CAF_REQUIRE(found);
  CAF_CHECK(found->run.outcome == "success");
  CAF_CHECK(json::parse(found->answer)["stdout"] == "hello\n");
}

CAF_TEST(what people see is nothing that the client gets) {
  call(1, "1");
  caf::anon_send(session, run_progress{id(0), "hello", true});
  consume_messages();
  CAF_CHECK(notifications("notifications/progress").empty());
  CAF_CHECK(notifications("notifications/message").empty());
}

CAF_TEST(a run that is cancelled on the page answers its client) {
  call(1, "1");
  CAF_CHECK(book->cancel(id(0)));
  consume_messages();
  CAF_CHECK((*runs)[0]->cancelled);
  CAF_CHECK(answers(1) == 0u);
  run_answer cancelled;
  cancelled.status = run_status::cancelled;
  finish(0, cancelled);
  CAF_CHECK(result(1, "/structuredContent/status") == "cancelled");
  CAF_CHECK(book->now(10).ended[0].outcome == "cancelled");
  CAF_CHECK(!book->cancel(id(0)));
}

CAF_TEST(so does one that waits for its place) {
  admission->places = 0;
  call(1, "1");
  auto waiting = book->now(10).running;
  CAF_REQUIRE(waiting.size() == 1u);
  CAF_CHECK(book->cancel(waiting[0].run));
  consume_messages();
  CAF_CHECK(result(1, "/structuredContent/status") == "cancelled");
  CAF_CHECK(runs->empty());
  CAF_CHECK(book->now(10).running.empty());
}

CAF_TEST(a client that cancels is seen to) {
  admission->places = 0;
  call(1, "1");
  cancel(1);
  CAF_CHECK(book->now(10).running.empty());
  CAF_CHECK(book->now(10).ended[0].outcome == "cancelled");
}

CAF_TEST(a session that fails leaves no run that goes on) {
  call(1, "1");
  caf::anon_send_exit(session, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(book->now(10).running.empty());
  CAF_CHECK(book->now(10).ended[0].error == "internal");
  CAF_CHECK(!book->cancel(id(0)));
}

CAF_TEST(a run in a session has its name and not its handle) {
  ask(1, "tools/call",
      {{"name", "run_python"}, {"arguments", {{"code", "1"}, {"session", "new"}}}});
  auto lease = (*runs)[0]->request.session;
  CAF_REQUIRE(lease);
  auto shown = book->now(10).running[0].session;
  CAF_CHECK(!shown.empty());
  CAF_CHECK(shown.find(lease->handle) == std::string::npos);
}

CAF_TEST(the book keeps so many runs and so many bytes) {
  run_book small{env->budget, {2, 3, 1'000, 20}};
  for (char digit : {'1', '2', '3'}) {
    small.asked(named(std::string(1, digit)), 1, [] {});
  }
  CAF_CHECK(small.now(10).running.size() == 2u);
  small.wrote("1", std::string(100, 'x'));
  CAF_CHECK(small.find("1")->live.size() <= 20u);
  auto used = env->budget->used();
  for (char digit : {'1', '2', '4', '5'}) {
    small.asked(named(std::string(1, digit)), 1, [] {});
    small.ended(std::string(1, digit), success(std::string(600, 'x')), 1);
  }
  auto ended = small.now(10).ended;
  CAF_REQUIRE(ended.size() == 3u);
  CAF_CHECK(ended[0].run == "5");
  CAF_CHECK(!small.find("5")->answer.empty());
  CAF_CHECK(small.find("4")->answer.empty());
  CAF_CHECK(!small.find("1"));
  CAF_CHECK(env->budget->used() - used <= 1'000u);
}

CAF_TEST(an answer for which there is no memory is not kept) {
  memory_budget::share all;
  CAF_REQUIRE(env->budget->take(env->budget->total() - env->budget->used(), all));
  call(1, "1");
  book->asked(named("x"), 1, [] {});
  book->ended("x", success("out"), 1);
  CAF_REQUIRE(book->find("x"));
  CAF_CHECK(book->find("x")->answer.empty());
  CAF_CHECK(book->now(10).ended[0].outcome == "success");
}

CAF_TEST(a stage is harmless and short) {
  book->asked(named("x"), 1, [] {});
  book->reached("x", "\x1b[2Jevil" + std::string(1'000, 'x'));
  auto stage = book->find("x")->run.stage;
  CAF_CHECK(stage.find('\x1b') == std::string::npos);
  CAF_CHECK(stage.size() <= 203u);
}

CAF_TEST_FIXTURE_SCOPE_END()
