#define CAF_SUITE invocation_policy

#include "protocol/approval_question.hpp"
#include "tests/support/invocation_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// The person in front of the client, and the approvals on the disk.
struct person {
  gate<std::string> answer;
  std::vector<client_question> questions;
};

struct scripted_person_state {
  explicit scripted_person_state(run_observer_actor::pointer) {}
  static inline const char* name = "scripted-person";
};

run_observer_actor::behavior_type
scripted_person(run_observer_actor::stateful_pointer<scripted_person_state> self,
                std::shared_ptr<person> script) {
  return {[](const run_progress&) {},
          [self, script](const client_question& question) {
            script->questions.push_back(question);
            return script->answer.ask(self);
          }};
}

struct approvals_script {
  std::vector<tool_approval> stored;
  error fault{errc::none, {}}; ///< of the file
  std::size_t asked = 0;
};

approval_store_actor::behavior_type scripted_approvals(approval_store_actor::pointer,
                                                       std::shared_ptr<approvals_script> script) {
  return {[script](read_atom, const tool_identity& what) -> caf::result<approval_state> {
            ++script->asked;
            return script->fault.code == errc::none
                       ? caf::result<approval_state>{state_of(script->stored, what)}
                       : caf::result<approval_state>{to_caf(script->fault)};
          },
          [script](save_atom, const tool_identity& what) -> caf::result<caf::ok_atom> {
            if (script->fault.code != errc::none) {
              return to_caf(script->fault);
            }
            add_approval(script->stored, {what, 1});
            return caf::ok_atom::value;
          }};
}

/// A run whose policy wants a yes to files/write-file.
struct policy_fixture : invocation_fixture {
  policy_fixture() {
    catalogue->rules.confirm = {{"files/write-*", "/p.json"}};
    someone = sys.spawn(scripted_person, at_the_desk);
    approvals_actor = sys.spawn(scripted_approvals, on_disk);
    approvals = [this] { return approvals_actor; };
    says("once");
  }

  ~policy_fixture() override {
    caf::anon_send_exit(someone, caf::exit_reason::kill);
    caf::anon_send_exit(approvals_actor, caf::exit_reason::kill);
    consume_messages();
  }

  void with_person() { request.observer = someone; }

  void says(const std::string& answer) {
    at_the_desk->answer.answer = R"({"action":"accept","content":{"answer":")" + answer + "\"}}";
  }

  tool_document& tool(std::size_t number) {
    auto changed = std::make_shared<server_documents>(**files->documents.answer);
    files->documents.answer = documents_ptr{changed};
    return changed->tools[number];
  }

  tool_identity written() {
    return {"files", "write-file", definition_digest((*files->documents.answer)->tools[1])};
  }

  std::shared_ptr<person> at_the_desk = std::make_shared<person>();
  std::shared_ptr<approvals_script> on_disk = std::make_shared<approvals_script>();
  run_observer_actor someone;
  approval_store_actor approvals_actor;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_policy_tests, policy_fixture)

CAF_TEST(nobody_to_ask_is_a_no_that_says_what_to_do) {
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(
      refused(1, errc::denied,
              {"confirm rule \"files/write-*\" (/p.json)", "bulkhead approve files/write-file"}));
  call(2, "files", "write_file");
  CAF_CHECK(refused(2, errc::denied, {"bulkhead approve files/write-file"}));
  CAF_CHECK(files->calls.empty());
  call(3, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
}

CAF_TEST(a_person_is_shown_the_call_and_says_yes_to_it_alone) {
  with_person();
  start_code();
  call(1, "files", "write-file", R"({"path":"a"})");
  CAF_REQUIRE_EQUAL(at_the_desk->questions.size(), 1u);
  const auto& question = at_the_desk->questions[0];
  CAF_CHECK_EQUAL(question.method, "elicitation/create");
  CAF_CHECK_EQUAL(question.server, "");
  CAF_CHECK_EQUAL(question.run, "run-7");
  CAF_CHECK(json::parse(question.params)["message"].get<std::string>().find(R"({"path":"a"})") !=
            std::string::npos);
  CAF_REQUIRE_EQUAL(files->calls.size(), 1u);
  CAF_CHECK_EQUAL(files->calls[0].arguments, R"({"path":"a"})");
  call(2, "files", "write-file", R"({"path":"b"})");
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 2u);
  CAF_CHECK(on_disk->stored.empty());
}

CAF_TEST(an_always_is_stored_for_the_definition_and_not_asked_again) {
  with_person();
  says("always");
  start_code();
  at_the_desk->answer.held = true;
  call(1, "files", "write-file");
  call(2, "files", "write-file");
  CAF_CHECK(files->calls.empty());
  open(at_the_desk->answer);
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 1u);
  CAF_REQUIRE_EQUAL(on_disk->stored.size(), 1u);
  CAF_CHECK(on_disk->stored[0].what == written());
}

CAF_TEST(a_stored_approval_needs_nobody) {
  on_disk->stored = {{written(), 1}};
  start_code();
  call(1, "files", "write_file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
}

CAF_TEST(a_changed_definition_loses_its_approval) {
  for (auto member :
       {&tool_document::description, &tool_document::input_schema, &tool_document::annotations}) {
    policy_fixture world;
    world.on_disk->stored = {{world.written(), 1}};
    world.tool(1).*member = R"({"other":1})";
    world.start_code();
    world.call(1, "files", "write-file");
    CAF_CHECK(world.refused(1, errc::denied, {"definition has changed since"}));
    CAF_CHECK(world.files->calls.empty());
  }
}

CAF_TEST(an_approval_of_one_tool_is_none_of_another) {
  auto other = written();
  other.tool = "write-files";
  auto elsewhere = written();
  elsewhere.server = "spare";
  on_disk->stored = {{other, 1}, {elsewhere, 1}};
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(refused(1, errc::denied));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(a_no_holds_for_the_rest_of_the_run) {
  with_person();
  says("no");
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(refused(1, errc::denied, {"said no"}));
  says("always");
  call(2, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"said no"}));
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 1u);
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(what_is_no_clear_yes_is_a_no) {
  for (const auto* answer :
       {R"({"action":"cancel"})", R"({"action":"decline","content":{"answer":"once"}})",
        R"({"action":"accept"})", R"({"action":"accept","content":{"answer":"sure"}})", "[]"}) {
    policy_fixture world;
    world.with_person();
    world.at_the_desk->answer.answer = answer;
    world.start_code();
    world.call(1, "files", "write-file");
    CAF_CHECK(world.refused(1, errc::denied));
    CAF_CHECK(world.files->calls.empty());
  }
}

CAF_TEST(a_client_that_cannot_ask_is_a_no_each_time) {
  with_person();
  at_the_desk->answer.refuse_with(errc::unavailable, "this client can't be asked");
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(refused(1, errc::denied, {"can't be asked", "bulkhead approve files/write-file"}));
  call(2, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"can't be asked"}));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(questions_are_asked_one_by_one_and_not_for_ever) {
  with_person();
  start_code();
  at_the_desk->answer.held = true;
  for (std::uint64_t id = 1; id <= 20; ++id) {
    call(id, "files", "write-file");
    CAF_CHECK_EQUAL(at_the_desk->questions.size(), 1u);
  }
  open(at_the_desk->answer);
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 16u);
  CAF_CHECK_EQUAL(files->calls.size(), 16u);
  CAF_CHECK(refused(20, errc::denied, {"enough"}));
}

CAF_TEST(whoever_does_not_answer_in_time_says_no_and_the_clock_stands_still) {
  with_person();
  at_the_desk->answer.held = true;
  start_code();
  call(1, "files", "write-file");
  pass(100s);
  CAF_CHECK(answers.empty());
  pass(env->bounds.question_time - 98s);
  CAF_CHECK(refused(1, errc::denied));
  open(at_the_desk->answer);
  CAF_CHECK(files->calls.empty());
  call(2, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"used up"}));
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 1u);
  pass(31s);
  CAF_CHECK(over(run_status::timeout));
}

CAF_TEST(a_call_that_the_code_gave_up_is_not_made_whatever_the_answer) {
  with_person();
  at_the_desk->answer.held = true;
  start_code();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    call(id, "files", "write-file");
  }
  tell(guest_cancel{1});
  tell(guest_cancel{2});
  CAF_CHECK(refused(1, errc::cancelled));
  CAF_CHECK(refused(2, errc::cancelled));
  open(at_the_desk->answer);
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  CAF_CHECK_EQUAL(at_the_desk->questions.size(), 2u);
  CAF_CHECK(refused(1, errc::cancelled));
}

CAF_TEST(an_answer_after_the_end_of_the_run_calls_nothing) {
  with_person();
  at_the_desk->answer.held = true;
  start_code();
  call(1, "files", "write-file");
  cancel();
  CAF_CHECK(over(run_status::cancelled));
  open(at_the_desk->answer);
  CAF_CHECK(files->calls.empty());
  CAF_CHECK(unanswered(1));
}

CAF_TEST(an_answer_after_the_code_ended_calls_nothing) {
  with_person();
  at_the_desk->answer.held = true;
  start_code();
  call(1, "files", "write-file");
  tell(guest_done{"run-7", 0, {}, {}, {}});
  open(at_the_desk->answer);
  CAF_CHECK(over(run_status::success));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(unreadable_approvals_approve_nothing) {
  on_disk->stored = {{written(), 1}};
  on_disk->fault = {errc::malformed, "damaged"};
  start_code();
  call(1, "files", "write-file");
  CAF_CHECK(refused(1, errc::denied));
  CAF_CHECK(files->calls.empty());
}

CAF_TEST(destructive_tools_are_those_that_do_not_say_otherwise) {
  catalogue->rules.confirm.clear();
  catalogue->rules.confirm_destructive = "/p.json";
  tool(0).annotations = R"({"readOnlyHint":true})";
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  call(2, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"confirm rule \"destructive\" (/p.json)"}));
}

CAF_TEST(read_only_hides_and_refuses_what_does_not_say_that_it_reads) {
  catalogue->rules.confirm.clear();
  catalogue->rules.read_only = {{"*", "/p.json"}};
  tool(0).annotations = R"({"readOnlyHint":true})";
  tool(1).annotations = R"({"readOnlyHint":true,"destructiveHint":true})";
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
  call(2, "files", "write-file");
  CAF_CHECK(refused(2, errc::denied, {"readOnly rule \"*\" (/p.json)"}));
  call(3, "files", "write_file");
  CAF_CHECK(refused(3, errc::denied, {"readOnly rule"}));
  ask(4, guest_call_kind::list_tools, "files");
  CAF_CHECK_EQUAL(response(4).size(), 1u);
  ask(5, guest_call_kind::search_tool_docs, "", "writes text");
  CAF_CHECK(response(5).dump().find("write-file") == std::string::npos);
  ask(6, guest_call_kind::query_tool_docs, "files", "write-file");
  CAF_CHECK(refused(6, errc::not_found));
  ask(7, guest_call_kind::query_tool_docs, "files");
  CAF_CHECK(response(7).dump().find("write") == std::string::npos);
  CAF_CHECK_EQUAL(files->calls.size(), 1u);
}

CAF_TEST(names_that_look_like_another_reach_no_server) {
  start_code();
  std::uint64_t id = 0;
  for (const auto* name :
       {"Read-File", "READ-FILE", "read\u2010file", "re\u0430d-file", " read-file", "read-file ",
        "read-file\u200b", "./read-file", "files/read-file", "delete-\u0430ll", "Delete-All"}) {
    call(++id, "files", name);
    CAF_CHECK(refused(id, errc::not_found) || refused(id, errc::denied));
  }
  for (const auto* name : {"Files", "f\u0456les", "files ", "vault", "Vault", "files/read-file"}) {
    call(++id, name, "read-file");
    CAF_CHECK(refused(id, errc::not_found) || refused(id, errc::denied));
  }
  for (const auto& [name, script] : servers) {
    CAF_CHECK(script->calls.empty());
  }
}

CAF_TEST(limits_hold_for_calls_at_once) {
  catalogue->rules.calls_per_run = {{3, "/p.json", {}}};
  catalogue->rules.calls_per_tool = {{2, "/p.json", "files/read-*"}};
  files->call.held = true;
  start_code();
  for (std::uint64_t id = 1; id <= 10; ++id) {
    call(id, "files", id % 2 == 0 ? "read_file" : "read-file");
  }
  CAF_CHECK_EQUAL(files->calls.size(), 2u);
  CAF_CHECK(refused(3, errc::limit, {"files/read-*", "perTool", "/p.json"}));
  // Refused ones count nowhere: one more is left of the run's three.
  with_person();
  open(files->call);
  call(11, "files", "write-file");
  CAF_CHECK(refused(11, errc::denied));
  call(12, "files", "write-file");
  CAF_CHECK(refused(12, errc::limit, {"callsPerRun"}));
}

CAF_TEST(a_session_gets_the_policy_of_each_of_its_runs) {
  // What it may call was fixed when it was made, and policy narrows that from run to run.
  request.session = session_lease{"handle", 1, {"files"}, box, false};
  catalogue->rules.deny.push_back("files/read-file");
  start_code();
  call(1, "files", "read-file");
  CAF_CHECK(refused(1, errc::denied, {"files/read-file"}));
  catalogue->rules.deny.push_back("files");
  policy_fixture later;
  later.request.session = session_lease{"handle", 2, {"files"}, later.box, false};
  later.catalogue->rules.deny.push_back("files");
  later.start_code();
  later.call(1, "files", "write-file");
  CAF_CHECK(later.refused(1, errc::not_found) || later.refused(1, errc::denied));
  CAF_CHECK(files->calls.empty());
  CAF_CHECK(later.files->calls.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
