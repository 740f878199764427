#define CAF_SUITE invocation_bounds

#include "tests/support/invocation_fixture.hpp"

/// What one run may ask for at once, hold and write to the log.

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(invocation_bounds_tests, invocation_fixture)

CAF_TEST(a_few_questions_about_tools_are_asked_at_once_and_the_others_in_order) {
  auto script = std::make_shared<library_script>();
  script_library(script);
  script->answers.answer = "[]";
  script->answers.held = true;
  start_code();
  std::vector<std::string> asked;
  for (std::uint64_t id = 1; id <= 30; ++id) {
    asked.push_back("q" + std::to_string(id));
    auto kind = id % 3 == 0 ? guest_call_kind::query_tool_docs : guest_call_kind::search_tool_docs;
    id % 3 == 1 ? call(id, "files", asked.back()) : ask(id, kind, "files", asked.back());
  }
  const auto most = env->bounds.questions_in_flight;
  CAF_CHECK_EQUAL(script->asked.size(), most);
  // What isn't asked of the library goes on meanwhile.
  call(31, "files", "read-file");
  CAF_CHECK(response(31).is_object());
  for (auto count = most; count < 30; count += most) {
    script->answers.release();
    consume_messages();
    // A value: the check keeps references, and std::min gives one.
    std::size_t expected = std::min<std::size_t>(count + most, 30);
    CAF_CHECK_EQUAL(script->asked.size(), expected);
  }
  open(script->answers);
  CAF_CHECK(script->asked == asked);
  for (std::uint64_t id = 1; id <= 30; ++id) {
    CAF_CHECK(response(id) == json::array());
  }
}

CAF_TEST(questions_that_fail_make_room_for_others) {
  auto script = std::make_shared<library_script>();
  script_library(script);
  script->answers.refuse_with(errc::overloaded, "no room");
  start_code();
  for (std::uint64_t id = 1; id <= 12; ++id) {
    ask(id, guest_call_kind::search_tool_docs, "", "text");
    CAF_CHECK(refused(id, errc::overloaded, {"no room"}));
  }
  caf::anon_send_exit(library, caf::exit_reason::kill);
  consume_messages();
  for (std::uint64_t id = 13; id <= 24; ++id) {
    ask(id, guest_call_kind::search_tool_docs, "", "text");
    CAF_CHECK(refused(id, errc::internal));
  }
}

CAF_TEST(many_refused_calls_are_few_lines_in_the_log) {
  keep_log();
  files->call.held = true;
  start_code();
  call(1, "files", "read-file");
  for (std::uint64_t i = 0; i < 500; ++i) {
    tell(refused_call{i, {errc::invalid_argument, "nonsense"}});
    call(1, "files", "read-file");
  }
  CAF_CHECK_EQUAL(logged("refused: nonsense"), 5u);
  CAF_CHECK_EQUAL(logged("two calls with the id"), 5u);
  cancel();
  CAF_CHECK_EQUAL(logged("500 unusable calls"), 1u);
  CAF_CHECK_EQUAL(logged("500 calls with an id in use"), 1u);
}

CAF_TEST(results_are_charged_until_the_sandbox_has_them) {
  env->budget = std::make_shared<memory_budget>(1'000'000);
  std::size_t charged = 0;
  files->call_hook = [&](const tool_call& call) {
    CAF_CHECK(call.room.take(100'000));
    charged = env->budget->used();
  };
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(charged >= 100'000);
  CAF_CHECK(response(1).is_object());
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(documents_that_find_no_room_are_refused) {
  auto documents = std::make_shared<server_documents>();
  documents->server = documents->alias = "files";
  documents->tools = {tool_named("read-file", "read_file", std::string(200'000, 'x'))};
  files->documents.answer = documents_ptr{documents};
  env->budget = std::make_shared<memory_budget>(100'000);
  start_code();
  ask(1, guest_call_kind::list_tools, "files");
  CAF_CHECK(refused(1, errc::overloaded, {"memory"}));
  ask(2, guest_call_kind::search_tool_docs, "files", "read");
  CAF_CHECK_EQUAL(response(2).size(), 1u);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(tools_are_indexed_once_for_all_runs) {
  auto shelve = [this](const documents_ptr& documents) {
    tool_shelf_ptr result;
    auto asking = sys.spawn([&](caf::event_based_actor* asker) {
      asker
          ->request(library, caf::infinite, documents_atom::value, catalogue_ptr{catalogue},
                    documents)
          .then([&](const tool_shelf_ptr& shelf) { result = shelf; },
                [](const caf::error&) { CAF_FAIL("no answer"); });
    });
    consume_messages();
    return result;
  };
  auto first = shelve(*files->documents.answer);
  CAF_CHECK_EQUAL(first->documents->tools.size(), 2u);
  CAF_CHECK(shelve(*files->documents.answer) == first);
  auto changed = std::make_shared<server_documents>(**files->documents.answer);
  changed->tools.pop_back();
  CAF_CHECK(shelve(documents_ptr{changed}) != first);
}

CAF_TEST_FIXTURE_SCOPE_END()
