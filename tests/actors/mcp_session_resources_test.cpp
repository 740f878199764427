#define CAF_SUITE mcp_session_resources

#include "tests/support/session_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string handle = "0123456789abcdef0123456789abcdef";
const std::string stdout_uri = "bulkhead://output/" + handle + "/stdout";

struct fixture : session_fixture {
  void read(const json& id, const std::string& uri) { ask(id, "resources/read", {{"uri", uri}}); }

  template <class T>
  void open(gate<T>& which) {
    which.held = false;
    which.release();
    consume_messages();
  }
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_session_resources_tests, fixture)

CAF_TEST(a part is read for the owner of the session) {
  left->read.answer = resource_part{"some text", 9, 9, "text/plain", {}};
  read(1, stdout_uri + "?offset=3&length=9");
  CAF_CHECK_EQUAL(answer(1, "/result/contents/0/text"), json("some text"));
  CAF_REQUIRE_EQUAL(left->ranges.size(), 1u);
  CAF_CHECK_EQUAL(left->ranges[0].owner, "local");
  CAF_CHECK(left->ranges[0].what == (resource_uri{handle, stream_id::out, {}, 3, 9}));
}

CAF_TEST(whatever the cause a resource that cannot be read is not found) {
  left->read.refuse_with(errc::not_found, "secret reasons");
  initialize("2025-11-25");
  std::vector<json> errors;
  for (const auto& uri : {stdout_uri, "bulkhead://artifacts/" + handle + "/x",
                          std::string{"bulkhead://artifacts/../../etc/passwd"},
                          std::string{"file:///etc/passwd"}, stdout_uri + "?offset=x"}) {
    read(1, uri);
    CAF_CHECK_EQUAL(answer(1, "/error/code"), json(-32002));
    CAF_CHECK_EQUAL(answer(1, "/error/data/uri"), json(uri));
    errors.push_back(answer(1, "/error/message"));
    CAF_CHECK_EQUAL(errors.front(), errors.back());
    messages->clear();
  }
  CAF_CHECK_EQUAL(left->ranges.size(), 2u);
}

CAF_TEST(a fault of the store is no missing resource) {
  left->read.refuse_with(errc::unavailable, "Input/output error");
  read(1, stdout_uri);
  CAF_CHECK_EQUAL(answer(1, "/error/code"), json(-32603));
}

CAF_TEST(lists show what runs left and go on by cursor) {
  left->list.answer = resource_page{{{stdout_uri, "stdout", "text/plain", 12}}, "more"};
  ask(1, "resources/list");
  CAF_CHECK_EQUAL(answer(1, "/result/resources/0/uri"), json("bulkhead://capabilities"));
  CAF_CHECK_EQUAL(answer(1, "/result/resources/2/uri"), json(stdout_uri));
  CAF_CHECK_EQUAL(answer(1, "/result/nextCursor"), json("more"));
  left->list.answer = resource_page{};
  ask(2, "resources/list", {{"cursor", "more"}});
  CAF_CHECK_EQUAL(answer(2, "/result/resources"), json::array());
  CAF_CHECK(left->lists ==
            (std::vector<std::pair<std::string, std::string>>{{"local", ""}, {"local", "more"}}));
  left->list.refuse_with(errc::invalid_argument, "Invalid cursor");
  for (const auto& cursor : {json("never given"), json(""), json(7)}) {
    ask(3, "resources/list", {{"cursor", cursor}});
    CAF_CHECK_EQUAL(answer(3, "/error/code"), json(-32602));
    messages->clear();
  }
}

CAF_TEST(reads are bounded and can be cancelled) {
  left->read.held = true;
  left->read.answer = resource_part{"x", 1, 1, "text/plain", {}};
  for (int i = 0; i < 17; ++i) {
    read(i, stdout_uri);
  }
  CAF_CHECK_EQUAL(answers(15), 0u);
  CAF_CHECK_EQUAL(answer(16, "/error/code"), json(-32603));
  read(3, stdout_uri); // its id is in use
  CAF_CHECK_EQUAL(answer(3, "/error/code"), json(-32600));
  say({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 5}}}});
  open(left->read);
  CAF_CHECK_EQUAL(answers(4), 1u);
  CAF_CHECK_EQUAL(answers(5), 0u);
  CAF_CHECK_EQUAL(answer(15, "/result/contents/0/text"), json("x"));
}

CAF_TEST(a store that does not answer is given up) {
  left->read.held = true;
  read(1, stdout_uri);
  for (int i = 0; i < 25; ++i) {
    advance_time(std::chrono::seconds{1});
    consume_messages();
  }
  CAF_CHECK_EQUAL(answer(1, "/error/code"), json(-32603));
}

CAF_TEST(links come where they are known) {
  for (const auto* revision : {"2025-03-26", "2025-06-18"}) {
    initialize(revision);
    ask(1, "tools/call", {{"name", "run_python"}, {"arguments", {{"code", "1"}}}});
    run_answer done;
    done.artifacts = {{"a", "text/plain", 1, "bulkhead://artifacts/x/a", "/f", {}}};
    caf::anon_send(runs->back()->actor, end_atom::value, done);
    consume_messages();
    auto blocks = answer(1, "/result/content").size();
    CAF_CHECK_EQUAL(blocks, std::string{revision} == "2025-06-18" ? 2u : 1u);
    messages->clear();
  }
}

CAF_TEST(files reach the run) {
  ask(1, "tools/call",
      {{"name", "run_python"},
       {"arguments", {{"code", "1"}, {"files", {{{"path", "a/b"}, {"text", "x"}}}}}}});
  CAF_REQUIRE_EQUAL(runs->size(), 1u);
  CAF_CHECK((*runs)[0]->request.files == (std::vector<input_file>{{"a/b", "x"}}));
}

CAF_TEST(output comes as progress and as debug logs) {
  initialize("2025-11-25");
  ask(0, "logging/setLevel", {{"level", "debug"}});
  ask(1, "tools/call",
      {{"name", "run_python"},
       {"arguments", {{"code", "1"}}},
       {"_meta", {{"progressToken", "t"}}}});
  const auto& request = (*runs)[0]->request;
  CAF_CHECK(request.live);
  caf::anon_send(request.observer, run_progress{request.id, "running"});
  caf::anon_send(request.observer, run_progress{request.id, "written", true});
  consume_messages();
  std::vector<json> texts;
  for (const auto& each : *messages) {
    if (each.value("method", "") == "notifications/progress") {
      texts.push_back(each["params"]["message"]);
    } else if (each.value("method", "") == "notifications/message") {
      CAF_CHECK_EQUAL(json(each["params"]["level"]), json("debug"));
      texts.push_back(each["params"]["data"]["text"]);
    }
  }
  CAF_CHECK(texts == (std::vector<json>{"queued", "running", "written", "written"}));
}

CAF_TEST(nobody gets output that they did not ask for) {
  initialize("2025-11-25");
  ask(0, "logging/setLevel", {{"level", "info"}});
  ask(1, "tools/call", {{"name", "run_python"}, {"arguments", {{"code", "1"}}}});
  CAF_CHECK(!(*runs)[0]->request.live);
  CAF_CHECK(!(*runs)[0]->request.observer);
}

CAF_TEST_FIXTURE_SCOPE_END()
