#define CAF_SUITE web_page

#include "tests/support/page_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

CAF_TEST_FIXTURE_SCOPE(web_page_tests, page_fixture)

CAF_TEST(files are for everybody and hold nothing) {
  auto index = ask("/ui/", "GET", "");
  CAF_CHECK(index->whole.status == 200u);
  CAF_CHECK(index->whole.body.find("<!doctype html>") == 0);
  CAF_CHECK(ask("/ui", "GET", "")->field("Location") == "ui/");
  CAF_CHECK(ask("/ui/none.js", "GET", "")->whole.status == 404u);
}

CAF_TEST(a principal without a tenant sees nothing) {
  for (const auto* target : {"/ui/api/state", "/ui/api/events", "/ui/api/ledger"}) {
    CAF_CHECK(ask(target, "GET", "nobody")->whole.status == 403u);
  }
}

CAF_TEST(a snapshot has all that goes on) {
  auto all = std::make_shared<server_catalogue>();
  all->servers.resize(2);
  all->servers[0].name = all->servers[0].alias = "files";
  all->servers[1].name = all->servers[1].alias = "vault";
  all->rules.deny = {"vault"};
  catalogue = all;
  ali->servers = {{"files", "ready", "1.0", 7, ""}};
  ali->sessions = {{"name", "ali", {"files"}, true, 5}, {"other", "eve", {}, false, 6}};
  ali->ready = 3;
  ali->calls = {{id_of('1'), 9}};
  ali->book->asked(a_run('1'), 1, [] {});
  auto state = ask("/ui/api/state")->body();
  CAF_CHECK(state["about"]["tenant"] == "ali");
  CAF_CHECK(state["servers"].size() == 1u);
  CAF_CHECK(state["servers"][0]["state"] == "ready");
  CAF_CHECK(state["servers"][0]["tools"] == 7);
  CAF_CHECK(state["sessions"].size() == 1u);
  CAF_CHECK(state["sessions"][0]["session"] == "name");
  CAF_CHECK(state["pool"]["waiting"] == 3);
  CAF_CHECK(state["runs"]["running"][0]["run"] == id_of('1'));
  CAF_CHECK(state["runs"]["running"][0]["calls"] == 9);
}

CAF_TEST(events begin with all and go on with what changes) {
  auto events = ask("/ui/api/events");
  CAF_CHECK(events->begun);
  CAF_CHECK(events->field("Content-Type") == "text/event-stream");
  for (const auto* name : {"time", "about", "runs", "pool", "charts", "servers", "sessions"}) {
    CAF_CHECK(pieces(events, name) == 1u);
  }
  ali->book->asked(a_run('1'), 1, [] {});
  pass(500ms);
  CAF_CHECK(piece(events, "runs")["running"][0]["stage"] == "queued");
  ali->book->reached(id_of('1'), "running");
  pass(500ms);
  CAF_CHECK(piece(events, "runs")["running"][0]["stage"] == "running");
  ali->book->ended(id_of('1'), answer_with("hi"), 1'000);
  pass(500ms);
  CAF_CHECK(piece(events, "runs")["running"].empty());
  CAF_CHECK(piece(events, "runs")["ended"][0]["outcome"] == "success");
  CAF_CHECK(piece(events, "charts")[0]["counts"]["success"] == 1);
  auto runs_told = pieces(events, "runs");
  pass(5s);
  CAF_CHECK(pieces(events, "runs") == runs_told);
  CAF_CHECK(pieces(events, "about") == 1u);
}

CAF_TEST(nobody reads of another tenant) {
  auto events = ask("/ui/api/events", "GET", "eve");
  ali->book->asked(a_run('1'), 1, [] {});
  ali->book->ended(id_of('1'), answer_with("secret"), 1'000);
  ali->sessions = {{"name", "ali", {}, true, 5}};
  ali->ready = 8;
  pass(5s);
  CAF_CHECK(piece(events, "runs")["ended"].empty());
  CAF_CHECK(piece(events, "charts").empty());
  CAF_CHECK(piece(events, "sessions").empty());
  CAF_CHECK(piece(events, "pool")["waiting"] == 0);
  CAF_CHECK(events->stream.find(id_of('1')) == std::string::npos);
}

CAF_TEST(a foreign run looks like an unknown one) {
  bool cancelled = false;
  ali->book->asked(a_run('1'), 1, [&] { cancelled = true; });
  ali->book->asked(a_run('2'), 1, [] {});
  ali->book->ended(id_of('2'), answer_with("secret"), 1'000);
  for (const auto* rest : {"", "/cancel"}) {
    auto method = *rest == 0 ? "GET" : "POST";
    auto unknown = ask("/ui/api/runs/" + id_of('f') + rest, method, "eve");
    CAF_CHECK(unknown->whole.status == 404u);
    for (char digit : {'1', '2'}) {
      auto foreign = ask("/ui/api/runs/" + id_of(digit) + rest, method, "eve");
      CAF_CHECK(foreign->whole == unknown->whole);
    }
  }
  CAF_CHECK(!cancelled);
  // What the ledger is asked for is the own tenant's, too.
  CAF_CHECK(!eve->queries.empty());
  for (const auto& query : eve->queries) {
    CAF_CHECK(query.owner == "eve");
  }
  CAF_CHECK(ali->queries.empty());
}

CAF_TEST(a run is cancelled once and only while it goes on) {
  int cancelled = 0;
  ali->book->asked(a_run('1'), 1, [&] { ++cancelled; });
  CAF_CHECK(ask("/ui/api/runs/" + id_of('1') + "/cancel", "POST")->whole.status == 202u);
  CAF_CHECK(cancelled == 1);
  ali->book->ended(id_of('1'), answer_with(""), 1);
  CAF_CHECK(ask("/ui/api/runs/" + id_of('1') + "/cancel", "POST")->whole.status == 404u);
  CAF_CHECK(cancelled == 1);
}

CAF_TEST(a run that goes on shows what it wrote last) {
  ali->book->asked(a_run('1'), 1, [] {});
  ali->book->wrote(id_of('1'), "<b>one</b>");
  ali->book->wrote(id_of('1'), "two");
  auto run = ask("/ui/api/runs/" + id_of('1'))->body();
  CAF_CHECK(run["live"] == "<b>one</b>\ntwo\n");
  CAF_CHECK(run["now"]["written"] == 2);
  CAF_CHECK(!run.contains("answer"));
}

CAF_TEST(a run that ended shows its answer its record and its calls) {
  ali->book->asked(a_run('1'), 1, [] {});
  auto answer = answer_with("out");
  answer.session = "0123456789abcdef0123456789abcdef";
  ali->book->ended(id_of('1'), answer, 1'000);
  ali->records.runs.resize(1);
  ali->records.runs[0].code.text = "print(1)";
  ali->records.calls.resize(2);
  ali->records.calls[0].tool = "read";
  auto text = ask("/ui/api/runs/" + id_of('1'))->whole.body;
  auto run = json::parse(text);
  CAF_CHECK(run["answer"]["stdout"] == "out");
  CAF_CHECK(run["record"]["code"] == "print(1)");
  CAF_CHECK(run["calls"].size() == 2u);
  // The handle opens the session.
  CAF_CHECK(text.find(answer.session) == std::string::npos);
}

CAF_TEST(a run that only the ledger knows is shown as far as that goes) {
  ali->records.runs.resize(1);
  ali->records.runs[0].outcome = "timeout";
  auto run = ask("/ui/api/runs/" + id_of('9'))->body();
  CAF_CHECK(run["record"]["outcome"] == "timeout");
  CAF_CHECK(!run.contains("now"));
  CAF_CHECK(ali->queries[0].run == id_of('9'));
}

CAF_TEST(the ledger is asked for the own records whatever is wanted) {
  ali->records.calls.resize(1);
  ali->records.calls[0].server = "files";
  auto found = ask("/ui/api/ledger?kind=calls&server=fi*&text=x")->body();
  CAF_CHECK(found["records"][0]["server"] == "files");
  CAF_CHECK(ali->queries.at(0).owner == "ali");
  CAF_CHECK(ali->queries.at(0).server == "fi*");
  CAF_CHECK(ali->queries.at(0).text == "x");
  CAF_CHECK(ask("/ui/api/ledger?owner=eve")->whole.status == 400u);
}

CAF_TEST(an artifact comes in parts and as something to be saved) {
  ali->artifacts["ali/" + id_of('a') + "/x.html"] = "<script>alert(1)</script>";
  auto whole = ask("/ui/api/artifacts/" + id_of('a') + "/x.html");
  CAF_CHECK(whole->begun);
  CAF_CHECK(whole->ended);
  CAF_CHECK(whole->stream == "<script>alert(1)</script>");
  CAF_CHECK(whole->field("Content-Type") == "application/octet-stream");
  CAF_CHECK(whole->field("Content-Disposition") == "attachment; filename*=UTF-8''x.html");
  CAF_CHECK(whole->field("X-Content-Type-Options") == "nosniff");
  CAF_CHECK(ali->reads == 3u);
  auto foreign = ask("/ui/api/artifacts/" + id_of('a') + "/x.html", "GET", "eve");
  auto unknown = ask("/ui/api/artifacts/" + id_of('b') + "/x.html", "GET", "eve");
  CAF_CHECK(foreign->whole.status == 404u);
  CAF_CHECK(foreign->whole == unknown->whole);
}

CAF_TEST(an artifact that goes while it is read breaks the connection) {
  ali->artifacts["ali/" + id_of('a') + "/x"] = std::string(25, 'x');
  ali->most_reads = 2;
  auto cut = ask("/ui/api/artifacts/" + id_of('a') + "/x");
  CAF_CHECK(cut->begun);
  CAF_CHECK(!cut->ended);
  CAF_CHECK(cut->abandoned);
}

CAF_TEST(a download waits for a slow reader) {
  ali->artifacts["ali/" + id_of('a') + "/x"] = std::string(25, 'x');
  auto waiting = std::make_shared<std::size_t>(mebibyte);
  auto slow = ask("/ui/api/artifacts/" + id_of('a') + "/x", "GET", "ali", waiting);
  pass(10s);
  CAF_CHECK(ali->reads == 0u);
  *waiting = 0;
  pass(500ms);
  CAF_CHECK(slow->ended);
  CAF_CHECK(slow->stream.size() == 25u);
}

CAF_TEST(a reader who takes nothing gets no more until it does) {
  auto waiting = std::make_shared<std::size_t>(0);
  auto slow = ask("/ui/api/events", "GET", "ali", waiting);
  *waiting = mebibyte;
  for (char digit : {'1', '2', '3'}) {
    ali->book->asked(a_run(digit), 1, [] {});
    pass(500ms);
  }
  CAF_CHECK(pieces(slow, "runs") == 1u);
  *waiting = 0;
  pass(500ms);
  CAF_CHECK(pieces(slow, "runs") == 2u);
  CAF_CHECK(piece(slow, "runs")["running"].size() == 3u);
}

CAF_TEST(readers are bounded by tenant and those who went make room) {
  page_allowance allowance;
  allowance.readers = 2;
  begin(allowance);
  auto first = ask("/ui/api/events");
  ask("/ui/api/events");
  auto refused = ask("/ui/api/events");
  CAF_CHECK(refused->whole.status == 429u);
  CAF_CHECK(!refused->field("Retry-After").empty());
  CAF_CHECK(ask("/ui/api/events", "GET", "eve")->begun);
  first->told();
  consume_messages();
  CAF_CHECK(ask("/ui/api/events")->begun);
}

CAF_TEST(readers of one tenant leave room for another) {
  page_allowance allowance;
  allowance.all_readers = 4;
  begin(allowance);
  CAF_CHECK(ask("/ui/api/events")->begun);
  CAF_CHECK(ask("/ui/api/events")->begun);
  CAF_CHECK(ask("/ui/api/events")->whole.status == 429u);
  CAF_CHECK(ask("/ui/api/events", "GET", "eve")->begun);
}

CAF_TEST(a silent stream shows signs of life and ends in the end) {
  auto events = ask("/ui/api/events");
  pass(16s);
  CAF_CHECK(pieces(events, "time") == 2u);
  CAF_CHECK(!events->ended);
  pass(600s);
  CAF_CHECK(events->ended);
}

CAF_TEST(streams end with their tenant) {
  auto events = ask("/ui/api/events");
  gone = true;
  pass(500ms);
  CAF_CHECK(events->ended);
}

CAF_TEST(nobody is asked while nobody looks) {
  auto events = ask("/ui/api/events");
  pass(4s);
  auto asked = ali->asked;
  CAF_CHECK(asked >= 2u);
  events->gone = true;
  events->told();
  consume_messages();
  pass(10s);
  CAF_CHECK(ali->asked == asked);
}

CAF_TEST(requests under way are bounded by tenant) {
  page_allowance allowance;
  allowance.requests = 1;
  begin(allowance);
  ali->artifacts["ali/" + id_of('a') + "/x"] = std::string(25, 'x');
  auto waiting = std::make_shared<std::size_t>(mebibyte);
  auto slow = ask("/ui/api/artifacts/" + id_of('a') + "/x", "GET", "ali", waiting);
  CAF_CHECK(ask("/ui/api/ledger")->whole.status == 429u);
  CAF_CHECK(ask("/ui/api/ledger", "GET", "eve")->whole.status == 200u);
  slow->gone = true;
  pass(500ms);
  CAF_CHECK(ask("/ui/api/ledger")->whole.status == 200u);
}

CAF_TEST(a stop ends the streams and answers) {
  auto events = ask("/ui/api/events");
  bool stopped = false;
  sys.spawn([&stopped, to = page](caf::event_based_actor* asking) {
    asking->request(to, seconds{5}, stop_atom::value)
        .then([&stopped](caf::ok_atom) { stopped = true; }, [](const caf::error&) {});
  });
  consume_messages();
  CAF_CHECK(stopped);
  CAF_CHECK(events->ended);
}

CAF_TEST_FIXTURE_SCOPE_END()
