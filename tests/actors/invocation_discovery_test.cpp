#define CAF_SUITE invocation_discovery

#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct fixture : invocation_fixture {
  /// The library has learned of a server's tools before.
  void teach(const std::string& server, std::vector<tool_document> tools) {
    auto documents = std::make_shared<server_documents>();
    documents->server = documents->alias = server;
    documents->tools = std::move(tools);
    caf::anon_send(library, documents_atom::value, catalogue_ptr{catalogue},
                   documents_ptr{documents});
    consume_messages();
  }

  void give_schema(const std::string& schema) {
    auto documents = std::make_shared<server_documents>();
    documents->server = documents->alias = "files";
    documents->tools = {tool_named("read-file", "read_file")};
    documents->tools[0].input_schema = schema;
    files->documents.answer = documents_ptr{documents};
  }

  std::vector<std::string> found(std::uint64_t id) const {
    std::vector<std::string> names;
    const auto answer = response(id);
    for (const auto& each : answer["tools"]) {
      names.push_back(each["tool"]);
    }
    return names;
  }

  std::string note(std::uint64_t id) const { return response(id).value("note", ""); }

  /// Nothing but `files` was looked for.
  bool only_files_asked_for() const { return registry->asked == std::vector<std::string>{"files"}; }
};

using names = std::vector<std::string>;

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_discovery_tests, fixture)

CAF_TEST(a_search_finds_what_is_known_of_servers_that_the_run_does_not_have) {
  teach("spare", {tool_named("paint-fence", "paint_fence", "Puts color on a fence.")});
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "", "paint the fence");
  CAF_CHECK(found(1) == names{"paint-fence"});
  CAF_CHECK(response(1)["tools"][0]["toCall"] == R"(pass servers=["spare"] to run_python)");
  CAF_CHECK_EQUAL(note(1), std::string{});
  ask(2, guest_call_kind::search_tool_docs, "spare", "fence");
  CAF_CHECK(found(2) == names{"paint-fence"});
  ask(3, guest_call_kind::search_tool_docs, "", "some text");
  CAF_CHECK_EQUAL(found(3).size(), 2u);
  CAF_CHECK(!response(3)["tools"][0].contains("toCall"));
  call(4, "spare", "paint-fence");
  CAF_CHECK(refused(4, errc::denied, {"spare", "servers="}));
  CAF_CHECK(only_files_asked_for());
}

CAF_TEST(a_search_says_which_servers_it_knows_nothing_of) {
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "", "text");
  CAF_CHECK_EQUAL(found(1).size(), 2u);
  CAF_CHECK(note(1).find(": spare;") != std::string::npos);
  CAF_CHECK(note(1).find("vault") == std::string::npos);
  CAF_CHECK(note(1).find(R"(servers=["spare"])") != std::string::npos);
  CAF_CHECK(only_files_asked_for());
}

CAF_TEST(documents_of_a_server_that_the_run_does_not_have) {
  teach("spare", {tool_named("paint-fence", "paint_fence"), tool_named("other", "other")});
  start_code();
  ask(1, guest_call_kind::query_tool_docs, "spare");
  CAF_REQUIRE_EQUAL(response(1).size(), 2u);
  CAF_CHECK(response(1)[0]["toCall"] == R"(pass servers=["spare"] to run_python)");
  ask(2, guest_call_kind::query_tool_docs, "spare", "paint_fence");
  CAF_CHECK_EQUAL(response(2).size(), 1u);
  ask(3, guest_call_kind::query_tool_docs, "spare", "paint-fense");
  CAF_CHECK(refused(3, errc::not_found, {"did you mean \"paint-fence\""}));
  guest_call stubs;
  stubs.id = 4;
  stubs.kind = guest_call_kind::query_tool_docs;
  stubs.server = "spare";
  stubs.stubs = true;
  tell(stubs);
  CAF_CHECK(response(4).get<std::string>().find("def paint_fence() -> Any:") != std::string::npos);
  CAF_CHECK(only_files_asked_for());
}

CAF_TEST(what_policy_denies_is_found_by_no_path) {
  teach("vault", {tool_named("open-safe", "open_safe", "Opens the safe.")});
  teach("spare", {tool_named("paint-fence", "paint_fence")});
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "", "open the safe");
  CAF_CHECK(found(1).empty());
  CAF_CHECK(note(1).find("vault") == std::string::npos);
  ask(2, guest_call_kind::search_tool_docs, "vault", "safe");
  CAF_CHECK(refused(2, errc::not_found, {"vault"}));
  ask(3, guest_call_kind::query_tool_docs, "vault", "open-safe");
  CAF_CHECK(refused(3, errc::not_found, {"vault"}));
  ask(4, guest_call_kind::search_tool_docs, "", "deletes all text");
  for (const auto& name : found(4)) {
    CAF_CHECK(name != "delete-all");
  }
}

CAF_TEST(a_policy_that_changes_cuts_what_is_known_already) {
  teach("spare",
        {tool_named("paint-fence", "paint_fence"), tool_named("burn-fence", "burn_fence")});
  auto stricter = std::make_shared<server_catalogue>(*catalogue);
  stricter->rules.deny.emplace_back("spare/burn-*");
  registry->catalogue.answer = catalogue_ptr{stricter};
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "spare", "fence");
  CAF_CHECK(found(1) == names{"paint-fence"});
  ask(2, guest_call_kind::query_tool_docs, "spare");
  CAF_CHECK_EQUAL(response(2).size(), 1u);
}

CAF_TEST(another_configuration_of_a_server_is_another_server) {
  teach("spare", {tool_named("paint-fence", "paint_fence")});
  auto changed = std::make_shared<server_catalogue>(*catalogue);
  changed->servers[1].command = "another";
  registry->catalogue.answer = catalogue_ptr{changed};
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "", "fence");
  CAF_CHECK(found(1).empty());
  CAF_CHECK(note(1).find("spare") != std::string::npos);
}

CAF_TEST(a_server_that_failed_is_told_beside_what_others_have) {
  teach("spare", {tool_named("paint-text", "paint_text")});
  files->documents.refuse_with(errc::server_failed, "it crashed");
  start_code();
  ask(1, guest_call_kind::search_tool_docs, "", "text");
  CAF_CHECK(found(1) == names{"paint-text"});
  CAF_CHECK(note(1).find("it crashed") != std::string::npos);
}

CAF_TEST(arguments_that_do_not_fit_the_schema_reach_no_server) {
  give_schema(R"({"properties":{"path":{"type":"string"}},"required":["path"],
                  "additionalProperties":false})");
  start_code();
  call(1, "files", "read-file", R"({"path":7})");
  CAF_CHECK(refused(1, errc::invalid_argument, {"read-file", "path: expected string"}));
  call(2, "files", "read_file", R"({"path":"a","pth":1})");
  CAF_CHECK(refused(2, errc::invalid_argument, {"did you mean \"path\""}));
  CAF_CHECK(files->calls.empty());
  call(3, "files", "read-file", R"({"path":"a"})");
  CAF_CHECK(response(3).is_object());
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(large_arguments_are_checked_by_the_library) {
  give_schema(R"({"properties":{"path":{"type":"string"}},"additionalProperties":false})");
  start_code();
  auto large = std::string(quickly_checked, 'x');
  call(1, "files", "read-file", R"({"pth":")" + large + "\"}");
  CAF_CHECK(refused(1, errc::invalid_argument, {"did you mean \"path\""}));
  CAF_CHECK(files->calls.empty());
  auto arguments = R"({"path":")" + large + "\"}";
  call(2, "files", "read-file", arguments);
  CAF_CHECK(response(2).is_object());
  CAF_REQUIRE_EQUAL(files->calls.size(), 1u);
  CAF_CHECK(files->calls[0].arguments == arguments);
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
}

CAF_TEST(a_large_call_is_not_made_once_the_run_is_over) {
  give_schema(R"({"properties":{"path":{"type":"string"}}})");
  auto library_answers = std::make_shared<library_script>();
  library_answers->answers.held = true;
  script_library(library_answers);
  start_code();
  call(1, "files", "read-file", R"({"path":")" + std::string(quickly_checked, 'x') + "\"}");
  cancel();
  open(library_answers->answers);
  CAF_CHECK(over(run_status::cancelled));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(a_schema_of_no_use_lets_every_call_through) {
  for (const auto* schema : {R"({"$ref":"https://example.com/schema.json"})", "7",
                             R"({"properties":{"path":"string"}})", R"({"$ref":"#"})"}) {
    fixture world;
    world.give_schema(schema);
    world.start_code();
    world.call(1, "files", "read-file", R"({"anything":[1,2]})");
    CAF_CHECK(world.response(1).is_object());
    CAF_CHECK_EQUAL(world.files->calls.size(), 1u);
  }
}

CAF_TEST(autoload_starts_an_allowed_server_when_code_calls_it) {
  env->config->autoload = true;
  start_code();
  CAF_CHECK(only_files_asked_for());
  ask(1, guest_call_kind::list_servers);
  CAF_CHECK_EQUAL(response(1).size(), 1u);
  ask(2, guest_call_kind::search_tool_docs, "", "text");
  CAF_CHECK(note(2).find("spare") != std::string::npos);
  CAF_CHECK(only_files_asked_for());
  auto documents = std::make_shared<server_documents>();
  documents->server = documents->alias = "spare";
  documents->tools = {tool_named("paint-fence", "paint_fence")};
  servers["spare"]->documents.answer = documents_ptr{documents};
  servers["spare"]->call.answer = "{}";
  call(3, "spare", "paint-fence");
  CAF_CHECK(response(3).is_object());
  CAF_CHECK_EQUAL(servers["spare"]->calls.size(), 1u);
  ask(4, guest_call_kind::list_servers);
  CAF_CHECK_EQUAL(response(4).size(), 2u);
  call(5, "vault", "open-safe");
  CAF_CHECK(refused(5, errc::not_found, {"vault"}));
  CAF_CHECK(servers["vault"]->deadlines.empty());
  guest_done done;
  done.id = "run-7";
  tell(done);
  CAF_REQUIRE(answered(run_status::success));
  CAF_CHECK(answers[0].servers == (names{"files", "spare"}));
}

CAF_TEST(a_session_loads_what_was_allowed_when_it_was_made) {
  env->config->autoload = true;
  for (bool allowed : {true, false}) {
    fixture world;
    world.env->config->autoload = true;
    world.request.session = session_lease{"handle", 3, {"files"}, {}, false, {"files"}};
    if (allowed) {
      world.request.session->loadable.emplace_back("spare");
      world.request.session->loadable.emplace_back("vault");
    }
    world.start_code();
    world.call(1, "spare", "anything");
    CAF_CHECK(world.refused(1, allowed ? errc::not_found : errc::denied));
    CAF_CHECK_EQUAL(world.servers["spare"]->deadlines.size(), allowed ? 1u : 0u);
    world.call(2, "vault", "anything");
    CAF_CHECK(world.refused(2, errc::not_found));
    CAF_CHECK(world.servers["vault"]->deadlines.empty());
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
